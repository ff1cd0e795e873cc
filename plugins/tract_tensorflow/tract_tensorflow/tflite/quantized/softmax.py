"""SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION of quantised rows, along the last axis."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.ops.quantize import LookupTable
from tract_core.ops.rounding import limits
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.gemmlowp import (
    bit_length,
    exponential,
    halves_away,
    logarithm,
    reciprocal,
    times_factor,
)
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.quantization import fixed_point
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.steps import centred, fixed_product, one_over_root, shifted_right, storage, stored
from tract_tensorflow.tflite.tables import between, by_table, interpolated
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

_BEFORE_POINT: Final = 5
"""Bits before the point of the numbers of which exponentials are taken."""

_OF_SUMS: Final = 12
"""Bits before the point of sums of exponentials."""


@quantized_op(ROWS, "SOFTMAX")
def softmax(node: TfliteNode, wire: Wiring) -> Wired:
    """The exponential of each number over their sum along the last axis, with a fixed point"""
    if storage(node.input(0)) is DatumType.I16:
        return _softmax_of_words(node, wire)
    powers, sums = _exponentials(wire, node.quantization(0).scale * float(np.float32(node.number("beta", 1))))
    total = sums.sum([sums.rank - 1]).cast(DatumType.I64)
    inverse, digits = (one.cast(DatumType.I32) for one in reciprocal(total))
    to = storage(node.output())
    low, high = limits(to)
    # The sum has so many bits above 1; what is left of 31 bits is shifted out.
    shifts = 32 - 31 - _OF_SUMS + 8 * to.itemsize - digits
    parts = fixed_product(powers, inverse, shifts)
    return (parts + low).maximum(low).minimum(high).cast(to)


def _exponentials(wire: Wiring, scale: float) -> tuple[Wired, Wired]:
    """Of how far each byte lies below the largest of its row: with all bits behind the point, and as in a sum."""
    below, found = _below_largest(wire), _exponentials_below(scale)
    return _looked_up(below, found), _looked_up(below, halves_away(found, np.array(_OF_SUMS)))


def _below_largest(wire: Wiring) -> Wired:
    """How many steps each byte lies below the largest of its row, as u8."""
    x = wire.tensor(0).cast(DatumType.I32)
    return (x.max([x.rank - 1]) - x).cast(DatumType.U8)


def _looked_up(x: Wired, table: Array) -> Wired:
    return x.op(LookupTable(Constant(table if table.dtype == np.float32 else table.astype(np.int32))))


def _exponentials_below(scale: float) -> Array:
    """For each number of steps below 0; 0 where the steps lie too far below."""
    steps = -np.arange(256)
    factor = min(scale * 2 ** (31 - _BEFORE_POINT), 2**31 - 1.0)
    least = _least_step(factor)
    found = exponential(times_factor(np.maximum(steps, least), factor))
    return np.where(steps >= least, found, 0)


def _least_step(factor: float) -> int:
    """How many steps down still have a place before the point."""
    _, shift = fixed_point(factor)
    return -math.floor((2**_BEFORE_POINT - 1) * 2 ** (31 - _BEFORE_POINT) / 2**shift)


def _softmax_of_words(node: TfliteNode, wire: Wiring) -> Wired:
    """Of 16 bits: exponentials and reciprocals lie between the entries of tables."""
    factor = node.quantization(0).scale * float(np.float32(node.number("beta", 1))) / (10.0 / 65535.0)
    scale = np.float64(2 / 65535)
    powers = interpolated(np.float64(10 / 65535), 2**15 - 1, scale, 0, np.exp)
    inverses = interpolated(np.float64(1 / 65535), -(2**15), scale, 0, lambda x: 1 / (1 + x))
    x = wire.tensor(0).cast(DatumType.I32)
    multiplier, shift = map(x.like, fixed_point(factor))
    below = fixed_product(x - x.max([x.rank - 1]), multiplier, shift)
    places = (below + (2**15 - 1)).maximum(-(2**15)).cast(DatumType.I16)
    found = by_table(places, lambda values: between(powers, values), DatumType.I32)
    total = found.sum([x.rank - 1]).cast(DatumType.I64)
    digits = bit_length(total)
    shifted = ((total << (31 - digits)) + 2**13) >> 14
    place = (shifted - (2**15 + 2**16)).maximum(-(2**15)).minimum(2**15 - 1).cast(DatumType.I16)
    inverse = by_table(place, lambda values: between(inverses, values), DatumType.I64)
    # From the sum's bits: the reciprocal of what is left when its first bit stands before the point.
    shift = digits - 1
    half = shift * 0 + 1 << (shift - 1)
    result = (found.cast(DatumType.I64) * inverse + half) >> shift
    return result.maximum(0).minimum(2**15 - 1).cast(DatumType.I16)


@quantized_op(ROWS, "LOG_SOFTMAX")
def log_softmax(node: TfliteNode, wire: Wiring) -> Wired:
    """The logarithm of SOFTMAX; of i8 with a fixed point, of u8 in f32"""
    scale = node.quantization(0).scale
    if storage(node.input(0)) is DatumType.U8:
        return _log_softmax_of_unsigned(node, wire)
    factor, below = min(scale * 2 ** (31 - _BEFORE_POINT), 2**31 - 1.0), _below_largest(wire)
    total = _exponentials(wire, scale)[1]
    whole = logarithm(total.sum([total.rank - 1]).cast(DatumType.I64)).cast(DatumType.I32)
    multiplier, shift = fixed_point(factor)
    back, back_shift = map(whole.like, fixed_point(2.0 ** (31 - shift) / multiplier))
    least = fixed_product(whole + -(2**31), back, back_shift)
    steps = _looked_up(below, times_factor(-np.arange(256), factor))
    found = shifted_right(steps - whole, 31 - _BEFORE_POINT - 4) + 127
    near = -below.cast(DatumType.I32) > least.maximum(_least_step(factor) - 1)
    return near.where(found.maximum(-128).minimum(127), found.like(-128)).cast(DatumType.I8)


def _log_softmax_of_unsigned(node: TfliteNode, wire: Wiring) -> Wired:
    """Exponentials are in a table, by how far a number lies below the largest of its row."""
    scale, y = np.float32(node.quantization(0).scale), node.output_quantization()
    x, to = wire.tensor(0).cast(DatumType.F32), np.float32(y.scale)
    powers = np.exp((-scale * np.arange(256).astype(np.float32)).astype(np.float64)).astype(np.float32)
    total = _looked_up(_below_largest(wire), powers).sum([x.rank - 1])
    start = (x.max([x.rank - 1]) * float(scale) + total.log()) / float(to)
    steps = (x * float(scale / to) - start).round_half_to_even() + float(y.zero)
    return steps.maximum(0).minimum(255).cast(DatumType.U8)


@quantized_op(ROWS, "L2_NORMALIZATION")
def l2_normalization(node: TfliteNode, wire: Wiring) -> Wired:
    """Times the reciprocal of the root of the sum of squares along the last axis, in steps of 1/128"""
    x = centred(wire, 0)
    total = (x * x).sum([x.rank - 1]).cast(DatumType.I64)
    multiplier, shift = one_over_root(total)
    bits = 7  # behind the point; of u8, before the product is rounded
    if storage(node.input(0)) is DatumType.U8:
        x, bits = x * 2**bits, 0
    found = fixed_product(x, multiplier.cast(DatumType.I32), (bits - shift).cast(DatumType.I32))
    return stored(found, node)
