"""Operators on two quantised tensors, element by element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tract_core.data import DatumType
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.gemmlowp import reciprocal
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.quantization import fixed_point
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.steps import (
    centred,
    fixed_product,
    scaled,
    shifted_right,
    small_steps,
    storage,
    stored,
    stored_sums,
)
from tract_tensorflow.tflite.tables import BYTES, by_table
from tract_tensorflow.tflite.wiring import Wiring
from tract_tensorflow.tflite_only.fixed_point import SMALL_SHIFTS
from tract_tensorflow.tflite_only.fixed_point_sum import FixedPointSum, Term

ROWS = Rows()


@quantized_op(ROWS, "ADD")
def add(node: TfliteNode, wire: Wiring) -> Wired:
    """Sums in finer steps than those of both, in 32 bits"""
    if _has_powers_of_two(node):
        return _sum_of_powers(node, wire, 1)
    return _sum(node, wire, 1)


@quantized_op(ROWS, "SUB")
def sub(node: TfliteNode, wire: Wiring) -> Wired:
    """As ADD, of the second with the other sign"""
    if _has_powers_of_two(node):
        return _sum_of_powers(node, wire, -1)
    return _sum(node, wire, -1)


def _sum(node: TfliteNode, wire: Wiring, sign: int) -> Wired:
    """Of bytes by one operator, where that has room for all that it meets."""
    to, y = storage(node.output()), node.output_quantization()
    scales, shift = [node.quantization(slot).scale for slot in (0, 1)], _sum_shift(node)
    coarse = 2 * max(scales)
    multiplier, power = fixed_point(coarse / (1 << shift) / y.scale)
    if to not in BYTES or not SMALL_SHIFTS[0] <= power <= SMALL_SHIFTS[1]:
        a, b, steps = _in_common_steps(wire, shift, second=sign)
        return stored_sums(a + b, np.array(steps / y.scale), node)
    terms = [_term(node, slot, scales[slot] / coarse, one) for slot, one in ((0, 1), (1, sign))]
    op = FixedPointSum((terms[0], terms[1]), shift, multiplier, power, small_steps(node))
    return Wired(wire, wire.op(op, *wire.ranks(wire.input(0), wire.input(1))))


def _term(node: TfliteNode, slot: int, factor: float, sign: int) -> Term:
    multiplier, shift = fixed_point(factor)
    return Term(node.quantization(slot).zero, sign, multiplier, -shift)


@quantized_op(ROWS, "SQUARED_DIFFERENCE")
def squared_difference(node: TfliteNode, wire: Wiring) -> Wired:
    """Differences in finer steps than those of both, in 32 bits"""
    a, b, steps = _in_common_steps(wire, 7)
    difference = a - b
    return stored(scaled(difference * difference, np.array(steps**2 / node.output_quantization().scale)), node)


def _most(node: TfliteNode) -> int | None:
    """What sums of bytes in common steps, or products of them, do not go beyond."""
    return None if storage(node.output()) is DatumType.I16 else 2**28


def _sum_shift(node: TfliteNode) -> int:
    """How many bits finer than the coarser one: what 32 bits have room for."""
    return 15 if storage(node.output()) is DatumType.I16 else 20


def _in_common_steps(wire: Wiring, shift: int, second: int = 1) -> tuple[Wired, Wired, float]:
    """Both operands, as i32 in common steps, and what one of these is."""
    scales = [wire.node.quantization(slot).scale for slot in (0, 1)]
    coarse = 2 * max(scales)
    found = [
        scaled(centred(wire, slot) * (sign << shift), np.array(scales[slot] / coarse))
        for slot, sign in ((0, 1), (1, second))
    ]
    return found[0], found[1], coarse / (1 << shift)


def _has_powers_of_two(node: TfliteNode) -> bool:
    """Whether a kernel for 16 bits only shifts: that of older files, whose scales are powers of two."""
    if storage(node.output()) is not DatumType.I16 or not node.flag("pot_scale_int16", default=True):
        return False
    each = (node.quantization(0), node.quantization(1), node.output_quantization())
    return all(one.zero == 0 and one.scale > 0 and _exponent(one.scale) is not None for one in each)


def _exponent(scale: float) -> int | None:
    """That of a power of two."""
    found = np.log2(scale)
    near = int(np.rint(found))
    return near if abs(found - near) < 1e-3 else None


def _sum_of_powers(node: TfliteNode, wire: Wiring, sign: int) -> Wired:
    """The finer one is shifted into the steps of the output, which are those of the other one."""
    to = _exponent(node.output_quantization().scale) or 0
    shifts = [to - (_exponent(node.quantization(slot).scale) or 0) for slot in (0, 1)]
    a, b = (shifted_right(wire.tensor(slot).cast(DatumType.I32), shift) for slot, shift in enumerate(shifts))
    return stored(a + b * sign, node)


@quantized_op(ROWS, "MUL")
def mul(node: TfliteNode, wire: Wiring) -> Wired:
    """Products in 32 bits"""
    return stored_sums(centred(wire, 0) * centred(wire, 1), np.array(_product_factor(node)), node, most=_most(node))


def _product_factor(node: TfliteNode) -> float:
    """Steps of the product in steps of the output, computed in f32."""
    a, b, y = (np.float32(one.scale) for one in (*map(node.quantization, (0, 1)), node.output_quantization()))
    return float(a * b / y)


@quantized_op(ROWS, "DIV")
def div(node: TfliteNode, wire: Wiring) -> Wired:
    """Times the reciprocal of each divisor, which is in a table, with as many digits as 32 bits have room for"""
    a, b, y = (np.float32(one.scale) for one in (*map(node.quantization, (0, 1)), node.output_quantization()))
    zeros, divisor = (node.quantization(0).zero, node.quantization(1).zero), wire.tensor(1)
    inverse, digits = (
        by_table(divisor, lambda values, part=part: _reciprocals(values - zeros[1])[part], DatumType.I32)
        for part in (0, 1)
    )
    is_negative = centred(wire, 1) < 0
    rooms = [
        by_table(wire.tensor(0), lambda values, sign=sign: _room((values - zeros[0]) * sign), DatumType.I32)
        for sign in (1, -1)
    ]
    room, x = is_negative.where(rooms[1], rooms[0]), centred(wire, 0)
    quotient = fixed_product(is_negative.where(-x, x), inverse, room)
    multiplier, shift = fixed_point(float(a / (b * y)))
    less = digits.like(shift) - digits - room
    quotient = (less < -31).where(0, quotient)  # less than the last digit: theirs is not defined there
    less = less.maximum(-31)
    return stored(fixed_product(quotient, quotient.like(multiplier), less), node)


def _reciprocals(values: Array) -> tuple[Array, Array]:
    """For each divisor, the reciprocal of its amount, and how many digits that has less than 31; of 0, nothing."""
    amounts = np.maximum(np.abs(values), 1)
    inverse, digits = reciprocal(amounts)
    return np.where(values == 0, 0, inverse), digits - 1


def _room(values: Array) -> Array:
    """How many digits can be put behind a number of 32 bits."""
    amounts = np.where(values < 0, -values - 1, values)
    return np.array([31 - int(amount).bit_length() for amount in amounts.tolist()])


def _comparison(name: str, compare: Callable[[Wired, Wired], Wired]) -> None:
    """Bytes are compared in steps of one, with 8 bits behind the point; 16-bit numbers by their integers."""

    @quantized_op(ROWS, name)
    def row(node: TfliteNode, wire: Wiring) -> Wired:
        """Compared with 8 bits behind the point"""
        if storage(node.input(0)) is DatumType.I16:
            return compare(wire.tensor(0), wire.tensor(1))
        a, b = (scaled(centred(wire, slot) * 256, np.array(node.quantization(slot).scale)) for slot in (0, 1))
        return compare(a, b)

    row.__name__ = row.__qualname__ = name.lower()


for _name, _compare in {
    "EQUAL": Wired.eq,
    "NOT_EQUAL": Wired.ne,
    "GREATER": Wired.__gt__,
    "GREATER_EQUAL": Wired.__ge__,
    "LESS": Wired.__lt__,
    "LESS_EQUAL": Wired.__le__,
}.items():
    _comparison(_name, _compare)


@quantized_op(ROWS, "PRELU")
def prelu(node: TfliteNode, wire: Wiring) -> Wired:
    """Below zero, products with the slopes"""
    x, y = node.quantization(0), node.output_quantization()
    kept, sloped = x.scale / y.scale, x.scale * node.quantization(1).scale / y.scale
    data = centred(wire, 0)
    product = scaled(data * centred(wire, 1), np.array(sloped))
    return stored((data >= 0).where(scaled(data, np.array(kept)), product), node)
