"""One call of an operator in an exported program: its arguments, by the names of the operator's schema."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import Any, Final, TypeAlias, TypeVar, cast

import numpy as np
import torch
from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Node

from tract_core.data import DatumType, DType
from tract_core.dims import Dim
from tract_core.errors import Unsupported
from tract_core.frontend.node import (
    ELEMENT_TYPE,
    FLAG,
    INTEGER,
    INTEGERS,
    NUMBER,
    NUMBERS,
    SIZE,
    SIZES,
    TEXT,
    TEXTS,
    AttributeKind,
    Attributes,
    Inputs,
)
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_torch.tensors import datum_type
from tract_torch.wiring.lowering import Lowering
from tract_torch.wiring.sizes import Names, dim_of, wire_number

T = TypeVar("T")

Known: TypeAlias = "OutletId | Dim | Sequence[Any]"
"""What a node of the program is: a tensor, a size, or several."""


class Call(Attributes, Inputs[str]):
    """A call. ``known``: what the nodes before it are, ``symbols``: what symbols are called in the model."""

    word = "argument"

    def __init__(
        self, node: Node, wire: NodeWiring, known: Mapping[Node, Known], symbols: Names, lowering: Lowering
    ) -> None:
        self.name = str(node.target)
        self.node, self.symbols, self.lowering = node, symbols, lowering
        self._wire, self._known = wire, known
        self._given = _arguments(node)
        self._kind: DatumType | None = None

    def with_tensors(self, kind: DatumType, tensors: Mapping[str, OutletId | None]) -> Call:
        """The same call on other tensors, of which something in an element type comes out."""
        other = copy(self)
        other._given, other._kind = {**self._given, **tensors}, kind
        return other

    @property
    def operator(self) -> str:
        """Its name, with the overload."""
        return self.name

    @property
    def names(self) -> Collection[str]:
        """The arguments that are given, or have a default."""
        return self._given

    def has(self, name: str) -> bool:
        """Whether an argument is given, and not None."""
        return self._given.get(name) is not None

    def find(self, name: str, kind: AttributeKind[T]) -> T | None:
        """An argument as one of a kind."""
        value = self._given.get(name)
        if value is None:
            return None
        if isinstance(value, Node) and kind is not SIZE:
            raise self.misfit(name, "is computed from data", f"{kind.text}, known before a run", Unsupported)
        try:
            return _READ[kind](self, value)
        except (TypeError, ValueError):
            raise self.misfit(name, f"is {value!r}", kind.text, Unsupported) from None

    def value(self, name: str) -> Any:
        """An argument as Python has it, that is neither a tensor nor a size, or None."""
        found = self._given.get(name)
        if isinstance(found, Node):
            raise self.misfit(name, "is computed from data", "one that is known before a run", Unsupported)
        return found

    @property
    def wiring(self) -> NodeWiring:
        """What adds the nodes of the call."""
        return self._wire

    def input(self, slot: str) -> OutletId:
        """A tensor. Raises Unsupported where the argument is none."""
        found = self.optional_input(slot)
        if found is None:
            raise self.misfit(slot, f"is {self._given.get(slot)!r}", "a tensor", Unsupported)
        return found

    def optional_input(self, slot: str) -> OutletId | None:
        """A tensor, or None."""
        return self._outlet(self._given.get(slot))

    def inputs(self, name: str) -> list[OutletId]:
        """A list of tensors."""
        return [one for one in self.optional_inputs(name) if one is not None]

    def optional_inputs(self, name: str) -> list[OutletId | None]:
        """A list of tensors, and None where there is none."""
        return [self._outlet(one) for one in cast("Sequence[Any]", self._given[name])]

    def _outlet(self, node: Any) -> OutletId | None:
        if isinstance(node, OutletId):
            return node
        known = self._known.get(node) if isinstance(node, Node) else None
        return known if isinstance(known, OutletId) else None

    def operands(self, name: str) -> list[Known]:
        """A list of tensors and sizes, as they are in the model."""
        given = cast("Sequence[Any]", self._given[name])
        return [self._known[one] if isinstance(one, Node) else self.dim_of(one) for one in given]

    def graph(self, name: str) -> GraphModule:
        """A branch, or the body of a loop."""
        found = self._given.get(name)
        held = getattr(found.graph.owning_module, str(found.target)) if isinstance(found, Node) else found
        if not isinstance(held, GraphModule):
            raise self.misfit(name, f"is {held!r}", "a graph", Unsupported)
        return held

    def dim_of(self, size: Any) -> Dim:
        """A size as PyTorch has it, or a node that computes one, as a size of the model."""
        return dim_of(size.meta["val"] if isinstance(size, Node) else size, self.symbols)

    def each(self, name: str, count: int, default: int | None = None) -> tuple[int, ...]:
        """So many numbers, also where one stands for all."""
        found = self.integers(name, None if default is None else (default,))
        return found * count if len(found) == 1 else found

    def operand(self, name: str, wire: NodeWiring, kind: DType) -> OutletId:
        """A tensor or a number, in an element type."""
        found = self._given[name]
        outlet = self._outlet(found)
        if outlet is not None:
            return wire.cast(outlet, kind)
        if isinstance(found, Node):
            return wire.cast(wire_number(found.meta["val"], self.symbols, wire), kind)
        return wire.const(np.asarray(found).astype(kind.numpy))

    def reads(self, place: int) -> bool:
        """Whether one of several outputs is read."""
        return any(user.args[1] == place for user in self.node.users)

    @property
    def result(self) -> torch.Tensor:
        """What comes out, as PyTorch sees it: its type and its shape."""
        found = self.node.meta["val"]
        return found if isinstance(found, torch.Tensor) else found[0]

    @property
    def results(self) -> list[torch.Tensor]:
        """All that comes out, as PyTorch sees it."""
        found = self.node.meta["val"]
        return [found] if isinstance(found, torch.Tensor) else list(found)

    @property
    def kind(self) -> DatumType:
        """The element type of what comes out."""
        return datum_type(self.result.dtype) if self._kind is None else self._kind

    def shape(self) -> tuple[Dim, ...]:
        """The sizes of what comes out."""
        return tuple(dim_of(size, self.symbols) for size in self.result.shape)

    def common_kind(self, a: str, b: str) -> DatumType:
        """The element type in which PyTorch computes with two operands, which are tensors or numbers."""
        found = [self._given[name] for name in (a, b)]
        one, other = (_operand(value.meta["val"] if isinstance(value, Node) else value) for value in found)
        return datum_type(torch.result_type(one, other))


def _arguments(node: Node) -> dict[str, Any]:
    """The arguments of a call by their names, with those that have a value when they are not given."""
    target = cast("Any", node.target)
    given: dict[str, Any] = {}
    if isinstance(target, HigherOrderOperator):
        names = list(inspect.signature(target.__call__).parameters)
        if target.name() == "map_impl":
            names = ["f", "xs", "additional_inputs"]
    else:
        arguments = target._schema.arguments
        names = [one.name for one in arguments]
        given = {one.name: one.default_value for one in arguments if one.has_default_value()}
    return given | dict(zip(names, node.args, strict=False)) | node.kwargs


def _several(value: Any) -> Sequence[Any]:
    """A list, also where one number stands for it."""
    return cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else [value]


_READ: Final[Mapping[AttributeKind[Any], Callable[[Call, Any], Any]]] = {
    INTEGER: lambda _, value: int(value),
    INTEGERS: lambda _, value: tuple(map(int, _several(value))),
    NUMBER: lambda _, value: float(value),
    NUMBERS: lambda _, value: tuple(map(float, _several(value))),
    TEXT: lambda _, value: str(value),
    TEXTS: lambda _, value: tuple(map(str, _several(value))),
    FLAG: lambda _, value: bool(value),
    SIZE: Call.dim_of,
    SIZES: lambda call, value: tuple(map(call.dim_of, _several(value))),
    ELEMENT_TYPE: lambda _, value: datum_type(value),
}
"""How arguments of each kind are read."""


def _operand(value: Any) -> Any:
    """An operand for `torch.result_type`, which looks at types and at whether there are axes."""
    if isinstance(value, torch.Tensor):
        return torch.empty((1,) * min(value.dim(), 1), dtype=value.dtype)
    return 1 if isinstance(value, torch.SymInt) else value
