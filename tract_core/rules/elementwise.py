"""Rules for element-wise operators in a row."""

from __future__ import annotations

from typing import Any, Final

from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add, Mul
from tract_core.ops.elementwise import (
    Abs,
    Ceil,
    ElementWise,
    Exp,
    Floor,
    Neg,
    Not,
    Recip,
    Round,
    RoundHalfToEven,
    Rsqrt,
    Sigmoid,
    Sign,
    Sqrt,
    Square,
)
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import produced_by, uniform

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
def square_of_root(model: TypedModel, node: TypedNode, op: Square) -> ModelPatch | None:
    """Square(Sqrt(x)) -> x, when x is certainly not negative"""
    root = produced_by(model, node.inputs[0], Sqrt)
    if root is None or not never_negative(model, root.inputs[0]):
        return None
    return ModelPatch.shunt_one(model, node, root.inputs[0])


@rewrites(Square)
def square_of_sign(model: TypedModel, node: TypedNode, op: Square) -> ModelPatch | None:
    """Square(Abs(x)), Square(Neg(x)) -> Square(x)"""
    first = produced_by(model, node.inputs[0], Abs, Neg)
    return None if first is None else ModelPatch.replace_op(model, node, op, first.inputs)


@rewrites(Recip)
def recip_of_root(model: TypedModel, node: TypedNode, op: Recip) -> ModelPatch | None:
    """Recip(Sqrt(x)) -> Rsqrt(x); Recip(Rsqrt(x)) -> Sqrt(x)"""
    root = produced_by(model, node.inputs[0], Sqrt, Rsqrt)
    if root is None:
        return None
    return ModelPatch.replace_op(model, node, Rsqrt() if isinstance(root.op, Sqrt) else Sqrt(), root.inputs)


_NEVER_NEGATIVE: Final = (Abs, Square, Exp, Sigmoid, Sqrt)


def never_negative(model: TypedModel, outlet: OutletId, depth: int = 4) -> bool:
    """Whether the operators that lead to a tensor exclude negative elements (they may well give not-a-number)."""
    node = model.nodes[outlet.node]
    op: Any = node.op
    if model.outlet_fact(outlet).datum_type.is_complex():
        return False
    if isinstance(op, _NEVER_NEGATIVE) or (isinstance(op, Reduce) and op.reducer is Reducer.MEAN_OF_SQUARES):
        return True
    known = uniform(model, outlet)
    if known is not None:
        return bool(known >= 0)
    sums = isinstance(op, (Add, Mul)) or (isinstance(op, Reduce) and op.reducer is Reducer.SUM)
    return depth > 0 and sums and all(never_negative(model, source, depth - 1) for source in node.inputs)


for rule in (undone, settled, square_of_root, square_of_sign, recip_of_root):
    ROWS.add(DECLUTTER, rule.name, rule)
