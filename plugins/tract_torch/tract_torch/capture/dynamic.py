"""Which sizes may be others: what `torch.export` calls dynamic shapes, and what these sizes are called in the model.

Besides what PyTorch takes, a text is a symbol of that name, of whichever sizes the program is right for; the same text
is the same size. It may also be a multiple of a symbol plus a number, as ``4*H+1``. Axes may be counted from the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

from tract_core.dims import linear_in_one_symbol, parse_dim
from tract_core.errors import DimError, InputError, meant
from tract_core.frozen import frozen
from tract_torch.arguments import of_type
from tract_torch.example import bound_arguments
from tract_torch.wiring.guards import ASSUMED
from tract_torch.wiring.sizes import expression_of

_SYMPY: Final = frozenset("SNEIOQ")
"""What PyTorch takes for SymPy's own names where symbols are computed with."""


@frozen
class Linear:
    """A size that PyTorch can be told of: ``factor * symbol + offset``, with a positive factor, no negative offset."""

    symbol: str
    factor: int
    offset: int

    @classmethod
    def of(cls, text: str) -> Linear:
        """From a text as ``H`` or ``4*H+1``. Raises InputError for any other one."""
        if text.isidentifier():
            return cls(text, 1, 0)
        found = _linear(text)
        if found is None or found[1] < 1 or found[2] < 0 or not found[0].isidentifier():
            hint = "a size is a symbol, as 'B', or a multiple of one plus a number, as '4*H+1'; PyTorch takes no others"
            raise InputError(f"{text!r} is no size that may be another one", hint=hint)
        if found[0] in _SYMPY:
            raise InputError(f"{text!r} cannot be told to PyTorch, whose {found[0]} means another thing", hint=_OTHER)
        return cls(*found)

    def size(self, value: int) -> int:
        """The size for a value of the symbol."""
        return self.factor * value + self.offset

    def solved(self, size: int) -> int | None:
        """The value of the symbol for a size; ``None`` where there is none."""
        value, rest = divmod(size - self.offset, self.factor)
        return None if rest or value < 0 else value

    def dim(self, root: Any) -> Any:
        """As PyTorch has it. ``root``: that of the symbol."""
        dim = root if self.factor == 1 else self.factor * root
        return dim + self.offset if self.offset else dim


_OTHER: Final = "give the symbol another name, as 'T'"


def _linear(text: str) -> tuple[str, int, int] | None:
    try:
        return linear_in_one_symbol(parse_dim(text))
    except DimError:
        return None


@frozen
class DynamicAxis:
    """A size that was said to be dynamic. ``leaf``: the place of the tensor among all of the example.

    ``where``: what errors call the tensor. ``axis``: of the tensor. ``dim``: what was said of the size.
    """

    where: str
    leaf: int
    axis: int
    dim: Any

    @property
    def name(self) -> str | None:
        """What the size is called, if it has a name."""
        if isinstance(self.dim, str):
            return self.dim
        dim = getattr(self.dim, "root", self.dim)  # of 2*S it is S
        return getattr(dim, "__name__", None) if isinstance(dim, Dim) else None

    def __str__(self) -> str:
        return f"axis {self.axis} of {self.where}" + (f" ({self.name})" if self.name else "")


class DynamicShapes:
    """The dynamic sizes of an example. ``specs``: as PyTorch takes them; ``axes``: one by one."""

    def __init__(
        self, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any
    ) -> None:
        """Raises InputError for names, axes and sizes that are none."""
        self.axes: list[DynamicAxis] = []
        self._roots = _roots(dynamic_shapes)
        self._leaves = {id(leaf): place for place, leaf in enumerate(pytree.tree_leaves((tuple(args), dict(kwargs))))}
        given = bound_arguments(module, args, kwargs)
        self.specs = dynamic_shapes
        if isinstance(dynamic_shapes, (list, tuple)):
            named = zip(given.items(), cast("Sequence[Any]", dynamic_shapes), strict=False)
            found = [self._spec(name, value, spec) for (name, value), spec in named]
            self.specs = type(dynamic_shapes)([*found, *dynamic_shapes[len(found) :]])
        elif dynamic_shapes is not None:
            of_type(
                dynamic_shapes, dict, "dynamic_shapes", "a dictionary of the names of arguments, or a list or tuple"
            )
            specs = cast("Mapping[Any, Any]", dynamic_shapes)
            unknown = next((name for name in specs if name not in given), None)
            if unknown is not None:
                near = meant(str(unknown), given)
                hint = f"did you mean {near[0]!r}?" if near else f"its arguments are {', '.join(given)}"
                raise InputError(f"dynamic_shapes names {unknown!r}, which the module is not called with", hint=hint)
            self.specs = {name: self._spec(name, given[name], spec) for name, spec in specs.items()}

    def _spec(self, where: str, value: Any, spec: Any) -> Any:
        """A part of the specification as PyTorch takes it."""
        if isinstance(value, torch.Tensor):
            return self._of_tensor(where, value, spec)
        if isinstance(value, dict) and isinstance(spec, dict):
            held = cast("Mapping[Any, Any]", value)
            return {key: self._spec(f"{where}[{key!r}]", held.get(key), one) for key, one in spec.items()}
        if isinstance(value, (list, tuple)) and isinstance(spec, (list, tuple)):
            pairs = list(zip(cast("Sequence[Any]", value), cast("Sequence[Any]", spec), strict=False))
            found = [self._spec(f"{where}[{place}]", *pair) for place, pair in enumerate(pairs)]
            return [*found, *spec[len(found) :]] if isinstance(spec, list) else (*found, *spec[len(found) :])
        return spec

    def _of_tensor(self, where: str, value: torch.Tensor, spec: Any) -> Any:
        if not isinstance(spec, (dict, list, tuple)):
            return spec
        rank = value.dim()
        pairs = list(spec.items()) if isinstance(spec, dict) else list(enumerate(cast("Sequence[Any]", spec)))
        found: dict[int, Any] = {}
        for axis, dim in cast("list[tuple[Any, Any]]", pairs):
            if not isinstance(axis, int) or not -rank <= axis < rank:
                raise InputError(f"has {rank} axes, dynamic_shapes has an axis {axis!r}", where=f"argument {where!r}")
            one = self._named(DynamicAxis(where, self._leaves[id(value)], axis % rank, dim))
            kind = getattr(getattr(dim, "type", None), "name", None)
            if isinstance(one.dim, (str, Dim)) or kind in ("AUTO", "DYNAMIC"):
                self.axes.append(one)
            found[one.axis] = Dim.DYNAMIC if isinstance(one.dim, str) else one.dim
        return found if isinstance(spec, dict) else type(spec)(found.get(axis) for axis in range(len(pairs)))

    def _named(self, axis: DynamicAxis) -> DynamicAxis:
        """With its size as PyTorch has it, where it is a text of a symbol of which there is a multiple somewhere."""
        if not isinstance(axis.dim, str):
            return axis
        try:
            size = Linear.of(axis.dim)
        except InputError as error:
            raise error.at(str(axis)) from None
        return replace(axis, dim=size.dim(self._roots[size.symbol])) if size.symbol in self._roots else axis

    @property
    def free(self) -> frozenset[str]:
        """The names of symbols that were given no range: those of texts."""
        return frozenset(axis.dim for axis in self.axes if isinstance(axis.dim, str)).union(self._roots)

    def named(self, name: str) -> DynamicAxis | None:
        """The first axis whose size has a name."""
        return next((axis for axis in self.axes if axis.name == name), None)


def _roots(dynamic_shapes: Any) -> dict[str, Any]:
    """The symbols of which there are multiples, as PyTorch has them."""
    texts = [leaf for leaf in pytree.tree_leaves(dynamic_shapes) if isinstance(leaf, str)]
    found = [one for one in map(_linear, texts) if one is not None]
    multiples = {name for name, factor, offset in found if (factor, offset) != (1, 0) and name not in _SYMPY}
    return {name: Dim(name, min=ASSUMED) for name in sorted(multiples)}


def symbol_names(program: torch.export.ExportedProgram, axes: Sequence[DynamicAxis]) -> dict[str, str]:
    """What the symbols of a program are called: as they were named, else after the input and the axis."""
    inputs = list(_inputs(program))
    named: dict[str, str] = {}
    for axis in axes:
        symbol = _symbol(inputs[axis.leaf][1], axis.axis) if axis.leaf < len(inputs) else None
        if axis.name and symbol:
            named.setdefault(symbol, axis.name)
    for name, tensor in inputs:
        for axis in range(tensor.dim() if isinstance(tensor, torch.Tensor) else 0):
            symbol = _symbol(tensor, axis)
            if symbol and symbol not in named:
                named[symbol] = f"{name}_{axis}"
    return named


def _inputs(program: torch.export.ExportedProgram) -> Iterator[tuple[str, Any]]:
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for name in program.graph_signature.user_inputs:
        held = nodes[name].meta.get("val") if isinstance(name, str) and name in nodes else None
        yield str(name), held


def _symbol(tensor: Any, axis: int) -> str | None:
    """The symbol that the size of an axis is, or that it is computed from."""
    size: Any = tensor.shape[axis] if isinstance(tensor, torch.Tensor) else None
    expression: Any = size.node.expr if isinstance(size, torch.SymInt) else None
    symbols = sorted(expression.free_symbols, key=str) if expression is not None else []
    return symbols[0].name if len(symbols) == 1 else None


def specialised(program: torch.export.ExportedProgram, axes: Sequence[DynamicAxis]) -> list[tuple[DynamicAxis, int]]:
    """The axes that were dynamic and are not, with the size that they have."""
    inputs = list(_inputs(program))
    found: list[tuple[DynamicAxis, int]] = []
    for axis in axes:
        tensor = inputs[axis.leaf][1] if axis.leaf < len(inputs) else None
        size = expression_of(tensor.shape[axis.axis]) if isinstance(tensor, torch.Tensor) else None
        if size is not None and size.is_Integer:
            found.append((axis, int(size)))
    return found
