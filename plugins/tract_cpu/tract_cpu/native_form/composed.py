"""A graph of operators on elements, as one operator: what is computed of an element at one position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tract_llvm.elements.expressions import Apply, Expression, element_of
from tract_llvm.language.types import ElementType, element_type

from tract_core.data import Constant
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import Array
from tract_cpu.cpu_only.composed import Composed, Original
from tract_cpu.kernels.composed import number


class Whole:
    """The expression of a graph while it is made. ``values``: the numbers of its values, by outlets."""

    def __init__(self, body: TypedModel) -> None:
        self.body = body
        arrays = ((number, _array(body.nodes[number])) for number in body.eval_order())
        self.arrays = [number for number, array in arrays if array is not None and array.size != 1]
        self.given = [*body.inputs, *map(OutletId, self.arrays)]
        types = [self.type_of(outlet) for outlet in self.given]
        self.types: list[ElementType | None] = list(types)
        self.steps: list[Apply] = []
        self.values = {outlet: place for place, outlet in enumerate(self.given)}

    def type_of(self, outlet: OutletId) -> ElementType | None:
        """The type of elements as kernels know it."""
        return element_type(self.body.outlet_fact(outlet).datum_type.storage)

    def add(self, node: TypedNode) -> bool:
        """Add what a node computes. Returns whether that is one element of those at its position."""
        (outlet, *others), result = node.outlets(), self.type_of(OutletId(node.id))
        array = _array(node)
        if others or result is None or result.is_carried:
            return False
        if array is not None and not array.size:
            return False
        step = Apply(node.op, (0,), result, number) if array is not None else self._applied(node, result)
        if step is None:
            return False
        self.values[outlet] = len(self.types)
        self.types.append(result)
        self.steps.append(step)
        return True

    def _applied(self, node: TypedNode, result: ElementType) -> Apply | None:
        numbers = [self.values[outlet] for outlet in node.inputs]
        kinds = [self.types[one] for one in numbers]
        known = [one for one in kinds if one is not None]
        element = element_of(self.body.registry, node.op, known, result) if len(known) == len(kinds) else None
        return None if element is None else element.applied(node.op, numbers, result)

    def expression(self) -> Expression:
        """What was added."""
        return Expression(tuple(one for one in self.types[: len(self.given)] if one is not None), tuple(self.steps))


def _array(node: TypedNode) -> Array | None:
    return node.op.value.array if isinstance(node.op, Const) and isinstance(node.op.value, Constant) else None


def composed_of(op: TypedOp, meaning: Callable[..., Any], body: TypedModel) -> tuple[Composed, list[Array]] | None:
    """The operator, and the arrays behind its inputs; ``None`` where a node is none on elements, or stretches ranks."""
    whole = Whole(body)
    rank = len(body.outlet_fact(body.outputs[0]).shape)
    ranks = {body.outlet_fact(outlet).rank for outlet in whole.given}
    if len(body.outputs) != 1 or not body.inputs or ranks != {rank} or None in whole.types:
        return None
    for place in body.eval_order():
        if OutletId(place) not in whole.values and not whole.add(body.nodes[place]):
            return None
    last = whole.values[body.outputs[0]]
    if not whole.steps or last != len(whole.types) - 1:
        return None
    arrays = [one for node in whole.arrays if (one := _array(body.nodes[node])) is not None]
    return Composed(Original(op, meaning, len(body.inputs)), whole.expression()), arrays
