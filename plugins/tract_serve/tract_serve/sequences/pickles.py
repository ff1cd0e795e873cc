"""Frozen states as bytes and back, without the model, and with nothing in them but arrays and what operators freeze.

A pickle is a program. Bytes from a store are only given to `loaded` once their signature is right (`signing.py`); that
it takes no other classes than these is a second line of defence.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import is_dataclass
from functools import cache
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from tract_core.errors import TractError, Unsupported
from tract_core.importing import imported
from tract_core.plugins.discovery import installed_plugins
from tract_serve.errors import BadRequest

if TYPE_CHECKING:
    from tract_core import Runnable

_MODEL: Final = "model"
"""What stands in a pickle in the place of the model."""

_KNOWN: Final = frozenset(
    {
        ("tract_core.api.state", "FrozenState"),
        ("tract_core.api.feeding", "FrozenFeeding"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.numeric", "_frombuffer"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("copyreg", "__newobj__"),
    }
)
"""What is found by these names, and by those of `_is_frozen_state` and of element types, and nothing else."""


def dumped(content: Any) -> bytes:
    """An object that holds frozen states, as bytes. Raises Unsupported where an operator freezes something else."""
    made = io.BytesIO()
    try:
        _Pickler(made, 5).dump(content)
    except (pickle.PickleError, TypeError, AttributeError, RecursionError) as error:
        hint = "operators freeze numbers, texts, arrays, and frozen dataclasses with 'Frozen' in their names"
        raise Unsupported(f"the state cannot be kept: {error}", hint=hint) from None
    return made.getvalue()


def loaded(content: bytes, runnable: Runnable) -> Any:
    """What `dumped` was given, for the same model, ready to run. Raises BadRequest for anything else."""
    try:
        return _Unpickler(io.BytesIO(content), runnable).load()
    except TractError:
        raise
    except Exception as error:  # damaged pickles raise anything
        raise BadRequest(f"the state that was kept cannot be read: {type(error).__name__}") from None


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> str | None:
        """The model is not part of a state."""
        from tract_core import Runnable

        return _MODEL if isinstance(obj, Runnable) else None

    def reducer_override(self, obj: Any) -> Any:
        """What could not be read again is not written."""
        if isinstance(obj, (type, FunctionType, BuiltinFunctionType)):
            _check(obj.__module__, obj.__qualname__)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, runnable: Runnable) -> None:
        super().__init__(file)
        self._runnable = runnable

    def persistent_load(self, pid: Any) -> Any:
        """The model that is there."""
        if pid != _MODEL:
            raise pickle.UnpicklingError("it refers to something else than the model")
        return self._runnable

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """One of the few classes that states are made of."""
        return _check(module_name, global_name)


def _check(module: str, name: str) -> Any:
    """What is found by a name. Raises UnpicklingError where states hold no such thing."""
    if (module, name) in _KNOWN or (module == "ml_dtypes" and name.isidentifier()):
        found = getattr(imported(module), name, None)
        if module != "ml_dtypes" or isinstance(found, type):
            return found
    elif module.partition(".")[0] in _packages() and name.isidentifier():
        found = getattr(imported(module), name, None)
        if _is_frozen_state(found):
            return found
    raise pickle.UnpicklingError(f"{module}.{name} is no part of a state")


def _is_frozen_state(found: Any) -> bool:
    """Whether it is a class that operators freeze, by how it is made, and by its name."""
    return isinstance(found, type) and "Frozen" in found.__name__ and is_dataclass(found)


@cache
def _packages() -> frozenset[str]:
    """The packages of the core and of all plugins, whose operators may keep something."""
    targets = [found.record.target.partition(":")[0] for found in installed_plugins()]
    return frozenset({"tract_core", *(target.partition(".")[0] for target in targets)})
