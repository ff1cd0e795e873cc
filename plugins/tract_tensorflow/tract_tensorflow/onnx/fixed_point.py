"""Integers times factors with a fixed point, in whole numbers of 64 bits.

ONNX shifts numbers without a sign alone. To divide by a power of two, rounding down, is to take away first what `Mod`
leaves, whose sign is that of the divisor.
"""

from __future__ import annotations

import numpy as np
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

from tract_core.data import DatumType
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite_only.fixed_point import FixedPointScale, FixedPointSteps, Rounding, cut_multiplier
from tract_tensorflow.tflite_only.fixed_point_sum import FixedPointSum, Term

ROWS = Rows()


@ROWS.row(ONNX_WRITE, FixedPointScale)
def fixed_point_scale(op: FixedPointScale, node: Spelling) -> str | None:
    """Mul, Add, Mod and Div, where the factors are constants"""
    known = _constants(node)
    if known is None:
        return None
    x, (multiplier, shift) = node.cast(node.input(), DatumType.I64), known
    if op.rounding is Rounding.TWICE:
        found = _scaled_twice(node, x, multiplier, shift)
    else:
        bits = (15 if op.rounding is Rounding.SHORT else 31) - shift
        factors = cut_multiplier(multiplier) if op.rounding is Rounding.SHORT else multiplier
        moved = node.add("Add", node.add("Mul", x, node.constant(factors)), node.constant(np.int64(1) << (bits - 1)))
        found = _divided_down(node, moved, np.int64(1) << bits)
    return node.cast(found, DatumType.I32)


@ROWS.row(ONNX_WRITE, FixedPointSteps)
def fixed_point_steps(op: FixedPointSteps, node: Spelling) -> str | None:
    """The same, and Clip"""
    known = _constants(node)
    if known is None:
        return None
    return _stored(op, node, _scaled_twice(node, node.cast(node.input(), DatumType.I64), *known))


@ROWS.row(ONNX_WRITE, FixedPointSum)
def fixed_point_sum(op: FixedPointSum, node: Spelling) -> str:
    """The same of two tensors, which are added in between"""
    first, second = (_in_common_steps(node, slot, term, op.left) for slot, term in enumerate(op.terms))
    total = node.add("Add", first, second)
    return _stored(op.steps, node, _scaled_twice(node, total, np.array(op.multiplier), np.array(op.shift)))


def _constants(node: Spelling) -> tuple[Array, Array] | None:
    """The multipliers and the shifts, in 64 bits, where both are known."""
    multiplier, shift = node.fact(1).constant, node.fact(2).constant
    return None if multiplier is None or shift is None else (multiplier.astype(np.int64), shift.astype(np.int64))


def _in_common_steps(node: Spelling, slot: int, term: Term, left: int) -> str:
    distance = node.add("Sub", node.cast(node.input(slot), DatumType.I64), node.constant(np.int64(term.zero)))
    wide = node.add("Mul", distance, node.constant(np.int64(term.sign << left)))
    return _scaled_twice(node, wide, np.array(term.multiplier), np.array(-term.right))


def _scaled_twice(node: Spelling, x: str, multiplier: Array, shift: Array) -> str:
    """What `FixedPointScale` computes when it rounds twice, before it is i32."""
    left, right = np.maximum(shift, 0).astype(np.int64), np.maximum(-shift, 0).astype(np.int64)
    if left.any():  # what does not fit in 32 bits is cut off
        grown = node.add("Mul", x, node.constant(np.int64(1) << left))
        x = node.cast(node.cast(grown, DatumType.I32), DatumType.I64)
    product = node.add("Mul", x, node.constant(multiplier.astype(np.int64)))
    half = _divided_down(node, node.add("Add", product, node.constant(np.int64(1 << 30))), np.array(1 << 31, np.int64))
    return _divided_away(node, half, np.int64(1) << right) if right.any() else half


def _divided_down(node: Spelling, x: str, power: Array) -> str:
    return _divided(node, x, power)[0]


def _divided_away(node: Spelling, x: str, power: Array) -> str:
    """Halves away from zero."""
    down, rest = _divided(node, x, power)
    most = np.asarray((power - 1) >> 1, np.int64)
    is_below = node.cast(node.add("Less", x, node.constant(np.int64(0))), DatumType.I64)
    threshold = node.add("Add", node.constant(most), is_below)
    return node.add("Add", down, node.cast(node.add("Greater", rest, threshold), DatumType.I64))


def _divided(node: Spelling, x: str, power: Array) -> tuple[str, str]:
    """The quotient, rounded down, and what is left."""
    divisor = node.constant(np.asarray(power, np.int64))
    rest = node.add("Mod", x, divisor)
    return node.add("Div", node.add("Sub", x, rest), divisor), rest


def _stored(op: FixedPointSteps, node: Spelling, x: str) -> str:
    moved = node.add("Add", x, node.constant(np.int64(op.zero)))
    bounded = node.add("Clip", moved, node.constant(np.int64(op.low)), node.constant(np.int64(op.high)))
    return node.cast(bounded, op.to)
