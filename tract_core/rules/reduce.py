"""Rules for reductions."""

from __future__ import annotations

import math
from typing import Final

from tract_core.model.fact import TypedFact
from tract_core.model.graph import Node, OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add, Div, Mul
from tract_core.ops.elementwise import Recip, Rsqrt, Sqrt, Square
from tract_core.ops.norm import RmsNorm
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.jumps import feeds_jump
from tract_core.rules.pattern import alone_by, produced_by, rounds_late, uniform, uniform_operand

ROWS = Rows()

_JOINS: Final = frozenset({Reducer.SUM, Reducer.PROD, Reducer.MIN, Reducer.MAX, Reducer.ALL, Reducer.ANY})
"""Reducers for which axes may be reduced one after the other or together."""


@rewrites(Reduce)
def remove_reduce(model: TypedModel, node: TypedNode, op: Reduce) -> ModelPatch | None:
    """Reduce(x) over axes of size 1 only -> x"""
    shape = model.outlet_fact(node.inputs[0]).shape
    if op.reducer not in _JOINS or any(shape[axis] != 1 for axis in op.axes):
        return None
    return ModelPatch.shunt_one(model, node)


@rewrites(Reduce)
def sort_axes(model: TypedModel, node: TypedNode, op: Reduce) -> ModelPatch | None:
    """Reduce(x) over axes in any order -> in ascending order"""
    axes = tuple(sorted(op.axes))
    return None if axes == op.axes else ModelPatch.replace_op(model, node, Reduce(axes, op.reducer), node.inputs)


@rewrites(Reduce)
def merge_reduces(model: TypedModel, node: TypedNode, op: Reduce) -> ModelPatch | None:
    """Reduce(Reduce(x)) of one kind over two sets of axes -> Reduce(x) over both

    Sums and products come in no certain order, but one in f16 or bf16 is rounded when it is done, and so stays apart.
    """
    first = alone_by(model, node.inputs[0], Reduce)
    if first is None or first.op.reducer is not op.reducer:
        return None
    if op.reducer not in _JOINS or set(first.op.axes) & set(op.axes):
        return None
    if op.reducer in (Reducer.SUM, Reducer.PROD) and rounds_late(node.outputs[0].fact):
        return None
    axes = tuple(sorted({*first.op.axes, *op.axes}))
    return ModelPatch.replace_op(model, node, Reduce(axes, op.reducer), first.inputs)


@rewrites(Mul, Div)
def mean_of_squares(model: TypedModel, node: TypedNode, op: Mul | Div) -> ModelPatch | None:
    """Sum(Square(x)) / n, or times 1/n where that is exact, with n elements summed -> MeanOfSquares(x)

    Not in f16 and bf16, where the mean would not be rounded, as the sum is.
    """
    total = alone_by(model, node.inputs[0], Reduce)
    if total is None or total.op.reducer is not Reducer.SUM:
        return None
    inner = alone_by(model, total.inputs[0], Square)
    fact = node.outputs[0].fact
    if inner is None or not fact.datum_type.is_float() or rounds_late(fact) or not _counts(model, node, total, op):
        return None
    return ModelPatch.replace_op(model, node, Reduce(total.op.axes, Reducer.MEAN_OF_SQUARES), inner.inputs)


def _counts(model: TypedModel, node: TypedNode, total: Node[TypedFact, Reduce], op: Mul | Div) -> bool:
    """Whether the second operand is how many elements are summed, or its reciprocal, and stretches nothing."""
    shape = model.outlet_fact(total.inputs[0]).shape
    sizes = [shape[axis] for axis in total.op.axes]
    factor = uniform(model, node.inputs[1])
    if factor is None or not all(isinstance(size, int) for size in sizes):
        return False
    count = math.prod(int(size) for size in sizes)
    if not count or total.outputs[0].fact.shape != node.outputs[0].fact.shape:
        return False
    if isinstance(op, Mul):
        return count & (count - 1) == 0 and factor * count == 1
    return bool(factor == count)


@rewrites(Mul, Div)
def rms_norm(model: TypedModel, node: TypedNode, op: Mul | Div) -> ModelPatch | None:
    """``x * Rsqrt(MeanOfSquares(x) + eps)`` or ``x / Sqrt(...)`` -> RmsNorm(x), along one axis, in f32 or wider

    A product with a reciprocal root is off by two units in the last place more than the quotient. Where that could be
    seen, because something behind it jumps, it stays.
    """
    if rounds_late(node.outputs[0].fact):
        return None
    for slot in (0, 1) if isinstance(op, Mul) else (0,):
        x, scale = node.inputs[slot], node.inputs[1 - slot]
        mean_and_eps = _under_root(model, scale, divided=isinstance(op, Div))
        plus = mean_and_eps and produced_by(model, mean_and_eps, Add)
        found = plus and uniform_operand(model, plus)
        if not plus or not found:
            continue
        mean = produced_by(model, plus.inputs[found[0]], Reduce)
        if mean is None or mean.inputs[0] != x or len(mean.op.axes) != 1:
            continue
        fits = model.outlet_fact(x).shape == node.outputs[0].fact.shape
        if not fits or mean.op.reducer is not Reducer.MEAN_OF_SQUARES:
            continue
        if isinstance(op, Div) or not feeds_jump(model, OutletId(node.id)):
            return ModelPatch.replace_op(model, node, RmsNorm(mean.op.axes[0], float(found[1])), [x])
    return None


def _under_root(model: TypedModel, outlet: OutletId, *, divided: bool) -> OutletId | None:
    """What stands under the root of a reciprocal root; of a root, for what is ``divided`` by it."""
    root = produced_by(model, outlet, Sqrt if divided else Rsqrt)
    if root is None and not divided and (reciprocal := produced_by(model, outlet, Recip)) is not None:
        root = produced_by(model, reciprocal.inputs[0], Sqrt)
    return None if root is None else root.inputs[0]


for rule in (remove_reduce, sort_axes, merge_reduces, mean_of_squares, rms_norm):
    ROWS.add(DECLUTTER, rule.name, rule)
