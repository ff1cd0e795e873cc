"""Calling `torch.export`: the module is as it was afterwards, and what is refused is explained."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
from torch.utils import _pytree as pytree

from tract_core.errors import ModelWarning, Unsupported
from tract_torch.alone import LOCK, alone
from tract_torch.arguments import of_type
from tract_torch.capture.constants import Constants
from tract_torch.capture.dynamic import DynamicShapes, specialised, symbol_names
from tract_torch.capture.reached import Reached, path_of
from tract_torch.capture.refusals import check_module, check_tensors, explained
from tract_torch.capture.shared_buffers import changed, let_be_one
from tract_torch.capture.watching import Watching
from tract_torch.weights.held import quantised, standing_in
from tract_torch.weights.qtensor import QTensor

_ARGUMENTS: Final = "a tensor, or a list or tuple of what the module is called with"

SYMBOLS: Final = "tract_symbols"
"""Under which key the graph of a program keeps what its symbols are called."""

FREE: Final = "tract_free_symbols"
"""The same for the names of symbols that were given no range."""

READ: Final = "tract_read"
"""The same for the names of buffers whose elements are numbers in the program."""

_QUANTISED: Final[WeakKeyDictionary[torch.export.ExportedProgram, Mapping[str, QTensor]]] = WeakKeyDictionary()


def exported_program(
    module: Any, args: Sequence[Any] | torch.Tensor, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any
) -> torch.export.ExportedProgram:
    """The program of a module in evaluation mode, with recurrent layers kept whole.

    The module is as it was afterwards, also where this raises. Raises InputError for what is no module, and for an
    example or dynamic shapes that do not fit it, Unsupported for what `torch.export` refuses. Warns of sizes that were
    left to PyTorch, as by ``Dim.AUTO``, and that can be nothing else than in the example.
    """
    check_module(module)
    args = (args,) if isinstance(args, torch.Tensor) else tuple(of_type(args, (tuple, list), "args", _ARGUMENTS))
    kwargs = dict(of_type(kwargs or {}, Mapping, "kwargs", "a mapping of names to arguments"))
    args, kwargs = _each_once(args, kwargs)
    shapes = DynamicShapes(module, args, kwargs, dynamic_shapes)
    leaves = pytree.tree_leaves((args, kwargs))
    with alone(), evaluating(module, leaves), standing_in(module), torch.no_grad():
        check_tensors(module, leaves)
        buffers = {name for name, _ in module.named_buffers(remove_duplicate=False)}
        warnings.filterwarnings("ignore", message=r"(?s).*assigned during export")  # lists of a layer's own weights
        constants = Constants(module)
        program = _exported(module, args, kwargs, shapes, constants)
        if constants.outdated(program):
            program = _exported(module, args, kwargs, shapes, constants)
        _check_buffers(module, buffers)
        _check_changes(module, program)
    let_be_one(program)
    _QUANTISED[program] = quantised(module)
    program.graph_module.meta[SYMBOLS] = symbol_names(program, shapes.axes)
    program.graph_module.meta[FREE] = shapes.free
    program.graph_module.meta[READ] = frozenset(constants.read)
    for axis, size in specialised(program, shapes.axes):
        warnings.warn(f"{axis} was specialised to {size}: other sizes are refused", ModelWarning, stacklevel=3)
    return program


def _each_once(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example with copies of tensors that are in it already: PyTorch takes the sizes of both for the same ones."""
    leaves, structure = pytree.tree_flatten((args, kwargs))
    seen = set[int]()
    found: list[Any] = []
    for leaf in leaves:
        again = isinstance(leaf, torch.Tensor) and id(leaf) in seen
        found.append(leaf.detach().clone() if again else leaf)
        seen.add(id(leaf))
    return pytree.tree_unflatten(found, structure) if any(map(operator.is_not, found, leaves)) else (args, kwargs)


def _exported(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: DynamicShapes, constants: Constants
) -> torch.export.ExportedProgram:
    """What `torch.export` makes of the module; raises what `explained` gives."""
    watching = Watching(module)
    try:
        with watching, constants, Reached(module):
            return torch.export.export(module, args, kwargs, dynamic_shapes=shapes.specs, strict=False)
    except Exception as error:
        raise explained(error, watching, shapes) from error


def _check_buffers(module: torch.nn.Module, before: Collection[str]) -> None:
    """Raises Unsupported for a buffer that there was not ``before`` the module was called: PyTorch loses it."""
    made = [name for name, _ in module.named_buffers(remove_duplicate=False) if name not in before]
    if made:
        hint = f"register it with a tensor, as self.register_buffer({made[0].rpartition('.')[2]!r}, torch.zeros(...))"
        raise Unsupported(f"the module makes the buffer {made[0]!r} while it is called", hint=hint)


def _check_changes(module: torch.nn.Module, program: torch.export.ExportedProgram) -> None:
    """Raises Unsupported for a tensor that the module changes in an object that is no module."""
    names = {name for name, _ in module.named_buffers(remove_duplicate=False)}
    paths = [path_of(module, tensor) for name, tensor in changed(program).items() if name not in names]
    found = [path for path in paths if path is not None]
    if found:
        name = "_".join(re.findall(r"\w+", found[0])[1:])
        others = f", and so {', '.join(found[1:6])}{', ...' if found[6:] else ''}" if found[1:] else ""
        hint = f"register it before the export, as self.register_buffer({name!r}, {found[0]}){others}"
        raise Unsupported(f"the module changes the tensor {found[0]}, which is no buffer", hint=hint)


def quantised_in(program: torch.export.ExportedProgram) -> Mapping[str, QTensor]:
    """The quantised tensors of the module that a program is of, by name: the program has others in their places."""
    return _QUANTISED.get(program, {})


@contextmanager
def evaluating(module: torch.nn.Module, leaves: Iterable[Any] = ()) -> Generator[None]:
    """The module in evaluation mode; what each part of it holds is what it held before, afterwards.

    So it is for tensors among ``leaves``, those of the example: PyTorch marks them with their dynamic axes, and leaves
    the marks where it refuses the module, so that the next export of the same tensors would be one with these axes.

    One thread at a time has a module so: it would find it changed by another.
    """
    with LOCK:
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        parts = list(module.modules())
        holding: list[dict[str, Any]] = [vars(part) for part in (*parts, *tensors)]
        holding += [part.__dict__[name] for part in parts for name in ("_parameters", "_buffers", "_modules")]
        before = [(now, dict(now)) for now in holding]
        try:
            module.eval()
            yield
        finally:
            for now, held in before:
                for name in [name for name in now if name not in held]:
                    del now[name]
                now.update({name: value for name, value in held.items() if now.get(name, now) is not value})
