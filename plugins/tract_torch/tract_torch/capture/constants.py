"""Numbers that a module reads out of its own buffers while it is exported: those that the buffers hold.

`torch.export` takes every element of a tensor for one that only a run knows, so that a module cannot decide, or size
anything, by a buffer. Where the module never changes that buffer, it is a number of the module like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils.weak import WeakIdKeyDictionary

from tract_torch import private
from tract_torch.capture.shared_buffers import changed

_MOST: Final = 64
"""How many elements a tensor has at most of which the values are followed."""

_READING: Final = frozenset({"__bool__", "__float__", "__index__", "__int__", "equal", "is_nonzero", "item", "tolist"})
"""Functions that give numbers in place of tensors, by name."""

_FOLLOWED: Final = frozenset(
    {
        *("abs", "add", "all", "amax", "amin", "and", "any", "bool", "ceil", "clone", "cpu", "cumsum", "detach", "div"),
        *("eq", "floor", "maximum", "minimum", "rdiv", "round", "rtruediv", "truediv"),
        *("flatten", "floor_divide", "floordiv", "ge", "getitem", "gt", "int", "invert", "le", "logical_and"),
        *("logical_not", "logical_or", "long", "lt", "max", "min", "mod", "mul", "ne", "neg", "or", "prod", "radd"),
        *("remainder", "reshape", "rfloordiv", "rmul", "rsub", "squeeze", "sub", "sum", "to", "unsqueeze", "view"),
    }
)
"""Functions of tensors whose values are computed beside the export, by name, without underscores around it."""


class _Value(NamedTuple):
    """What a tensor holds, and the names of the buffers that it comes from."""

    tensor: torch.Tensor
    names: frozenset[str]


class Constants(TorchFunctionMode):
    """Inside of it, numbers that are read out of buffers, or out of what is computed of them alone, are known.

    ``read``: the names of the buffers that the program depends on so.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.read: set[str] = set()
        self._without_modes = private.without_modes()
        buffers = dict(module.named_buffers(remove_duplicate=False)) if self._without_modes else {}
        self._held = {name: one for name, one in buffers.items() if type(one) is torch.Tensor and one.numel() <= _MOST}
        parts = {name: name.rpartition(".") for name in self._held}
        self._owners = {name: (_buffers(module.get_submodule(path)), last) for name, (path, _, last) in parts.items()}
        self._known = WeakIdKeyDictionary()

    def outdated(self, program: torch.export.ExportedProgram) -> bool:
        """Whether the program was made by numbers out of buffers that it changes; these are not followed any more."""
        self._let_go(changed(program))
        is_outdated = not self.read <= self._held.keys()
        if is_outdated:
            self.read.clear()
        return is_outdated

    def _let_go(self, names: Collection[str]) -> None:
        """Follow buffers of these names no more, nor what shares memory with them, nor what was computed."""
        self._known.clear()
        places = {one.untyped_storage().data_ptr() for name, one in self._held.items() if name in names}
        for name in [name for name, one in self._held.items() if one.untyped_storage().data_ptr() in places]:
            del self._held[name]

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The result of the function; a number out of a buffer where it is one."""
        kwargs = kwargs or {}
        name = str(getattr(func, "__name__", "")).partition(".")[0]
        if name in _READING:
            found = self._values(args, kwargs)
            if found is not None:
                self.read |= found[1]
                return self._computed(func, found[0])
        result = func(*args, **kwargs)
        if _writes(name, kwargs):
            tensors = [one for one in args if isinstance(one, torch.Tensor)]
            self._let_go([name for one in tensors if (name := self._name(one)) is not None])
        elif name.strip("_") in _FOLLOWED and isinstance(result, torch.Tensor):
            found = self._values(args, kwargs)
            if found is not None:
                self._known[result] = _Value(self._computed(func, found[0]), found[1])
        return result

    def _values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, frozenset[str]] | None:
        """The arguments with values in the place of tensors, and where these are from; None where one is not known."""
        leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
        values = [self._value(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        if any(one is None and leaf is not None for one, leaf in zip(values, leaves, strict=True)):
            return None
        if any(isinstance(one, (torch.SymInt, torch.SymFloat, torch.SymBool)) for one in values):
            return None
        given = [one for one in values if isinstance(one, _Value)]
        if not given:
            return None
        plain = [one.tensor if isinstance(one, _Value) else one for one in values]
        return pytree.tree_unflatten(plain, spec), frozenset[str]().union(*(one.names for one in given))

    def _value(self, tensor: torch.Tensor) -> _Value | None:
        if tensor in self._known:
            return self._known[tensor]
        if type(tensor) is torch.Tensor and tensor.numel() <= _MOST and self._without_modes:
            return _Value(tensor, frozenset())  # an attribute of the module
        name = self._name(tensor)
        return None if name is None else _Value(self._held[name], frozenset({name}))

    def _name(self, tensor: torch.Tensor) -> str | None:
        """The name of the buffer that a tensor is, or that it stands for."""
        owned = ((name, self._owners[name]) for name in self._held)
        return next((name for name, (buffers, last) in owned if buffers.get(last) is tensor), None)

    def _computed(self, func: Any, given: Any) -> Any:
        args, kwargs = given
        with self._without_modes():
            return func(*args, **kwargs)


def _buffers(module: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """Where a module keeps its buffers, and PyTorch what stands for them."""
    return module._buffers  # pyright: ignore[reportPrivateUsage]: nothing public says it


def _writes(name: str, kwargs: Mapping[str, Any]) -> bool:
    """Whether a function of this name changes a tensor that there was before: any may share memory with it."""
    is_in_place = name.endswith("_") and not name.endswith("__")
    is_operator = name.startswith("__i") and name not in ("__index__", "__int__", "__invert__")
    return is_in_place or is_operator or name == "__setitem__" or bool(kwargs.get("inplace")) or "out" in kwargs
