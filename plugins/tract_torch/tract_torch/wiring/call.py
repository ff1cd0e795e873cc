"""One call of an operator in an exported program: its arguments, by the names of the operator's schema."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Node

from tract_core.data import DatumType, DType
from tract_core.dims import Dim
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_torch.tensors import datum_type
from tract_torch.wiring.lowering import Lowering
from tract_torch.wiring.sizes import Names, dim_of, wire_number

Known: TypeAlias = "OutletId | Dim | Sequence[Any]"
"""What a node of the program is: a tensor, a size, or several."""


class Call:
    """A call. ``known``: what the nodes before it are, ``names``: what symbols are called in the model."""

    def __init__(self, node: Node, known: Mapping[Node, Known], names: Names, lowering: Lowering) -> None:
        self.name = str(node.target)
        self.node, self.names, self.lowering = node, names, lowering
        self._known = known
        self._given = _arguments(node)
        self._kind: DatumType | None = None

    def with_tensors(self, kind: DatumType, tensors: Mapping[str, OutletId | None]) -> Call:
        """The same call on other tensors, of which something in an element type comes out."""
        other = copy(self)
        other._given, other._kind = {**self._given, **tensors}, kind
        return other

    def has(self, name: str) -> bool:
        """Whether an argument is given, and not None."""
        return self._given.get(name) is not None

    def value(self, name: str) -> Any:
        """An argument that is neither a tensor nor a size: a number, a text, a list of such, or None."""
        found = self._given.get(name)
        if isinstance(found, Node):
            raise Unsupported(
                f"the argument {name!r} of {self.name} is computed from data, wanted one that is known before a run"
            )
        return found

    def tensor(self, name: str) -> OutletId:
        """A tensor. Raises Unsupported where the argument is none."""
        found = self.optional(name)
        if found is None:
            raise Unsupported(f"the argument {name!r} of {self.name} is {self._given.get(name)!r}, wanted a tensor")
        return found

    def optional(self, name: str) -> OutletId | None:
        """A tensor, or None."""
        return self._outlet(self._given.get(name))

    def tensors(self, name: str) -> list[OutletId]:
        """A list of tensors."""
        return [one for one in self.tensors_or_none(name) if one is not None]

    def tensors_or_none(self, name: str) -> list[OutletId | None]:
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
            raise Unsupported(f"the argument {name!r} of {self.name} is {held!r}, wanted a graph")
        return held

    def dim(self, name: str) -> Dim:
        """A size: a number, or one that the program computes."""
        return self._dim(self._given[name])

    def dims(self, name: str) -> list[Dim]:
        """A list of sizes."""
        return [self._dim(one) for one in cast("Sequence[Any]", self._given[name])]

    def _dim(self, value: Any) -> Dim:
        return dim_of(value.meta["val"] if isinstance(value, Node) else value, self.names)

    def dim_of(self, size: Any) -> Dim:
        """A size as PyTorch has it, as one of the model."""
        return dim_of(size, self.names)

    def ints(self, name: str) -> list[int]:
        """A list of numbers, also where one number stands for it."""
        found = self.value(name)
        return [found] if isinstance(found, int) else [int(one) for one in found]

    def each(self, name: str, count: int) -> list[int]:
        """So many numbers, also where one stands for all."""
        found = self.ints(name)
        return found * count if len(found) == 1 else found

    def operand(self, name: str, wire: NodeWiring, kind: DType) -> OutletId:
        """A tensor or a number, in an element type."""
        found = self._given[name]
        outlet = self._outlet(found)
        if outlet is not None:
            return wire.cast(outlet, kind)
        if isinstance(found, Node):
            return wire.cast(wire_number(found.meta["val"], self.names, wire), kind)
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
        return tuple(dim_of(size, self.names) for size in self.result.shape)

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


def _operand(value: Any) -> Any:
    """An operand for `torch.result_type`, which looks at types and at whether there are axes."""
    if isinstance(value, torch.Tensor):
        return torch.empty((1,) * min(value.dim(), 1), dtype=value.dtype)
    return 1 if isinstance(value, torch.SymInt) else value
