"""Rules for element-wise operators in a row."""

from __future__ import annotations

from typing import Final

from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.elementwise import (
    Abs,
    Ceil,
    ElementWise,
    Floor,
    Neg,
    Not,
    Recip,
    Round,
    RoundHalfToEven,
    Rsqrt,
    Sign,
    Sqrt,
    Square,
)
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import produced_by, rounds_late

ROWS = Rows()

_UNDONE: Final[frozenset[type]] = frozenset({Neg, Not})
"""Done twice, these do nothing."""

_SETTLED: Final[frozenset[type]] = frozenset({Abs, Ceil, Floor, Round, RoundHalfToEven, Sign})
"""Done twice, these do what they do once."""

_ROUNDED: Final = (Ceil, Floor, Round, RoundHalfToEven)


@rewrites(*_UNDONE)
def undone(model: TypedModel, node: TypedNode, op: ElementWise) -> ModelPatch | None:
    """Neg(Neg(x)), Not(Not(x)) -> x"""
    first = produced_by(model, node.inputs[0], type(op))
    return None if first is None else ModelPatch.shunt_one(model, node, first.inputs[0])


@rewrites(*_SETTLED)
def settled(model: TypedModel, node: TypedNode, op: ElementWise) -> ModelPatch | None:
    """Abs(Abs(x)) -> Abs(x), and the same for signs; a rounded number is not rounded again, whichever way"""
    first = model.nodes[node.inputs[0].node].op
    again = type(first) is type(op) or (isinstance(first, _ROUNDED) and isinstance(op, _ROUNDED))
    return ModelPatch.shunt_one(model, node) if again else None


@rewrites(Square)
def square_of_sign(model: TypedModel, node: TypedNode, op: Square) -> ModelPatch | None:
    """Square(Abs(x)), Square(Neg(x)) -> Square(x)"""
    first = produced_by(model, node.inputs[0], Abs, Neg)
    return None if first is None else ModelPatch.replace_op(model, node, op, first.inputs)


@rewrites(Recip)
def recip_of_root(model: TypedModel, node: TypedNode, op: Recip) -> ModelPatch | None:
    """Recip(Sqrt(x)) -> Rsqrt(x), which rounds the root as well; in f16 and bf16 it does not, and they stay apart"""
    root = produced_by(model, node.inputs[0], Sqrt)
    if root is None or rounds_late(node.outputs[0].fact):
        return None
    return ModelPatch.replace_op(model, node, Rsqrt(), root.inputs)


for rule in (undone, settled, square_of_sign, recip_of_root):
    ROWS.add(DECLUTTER, rule.name, rule)
