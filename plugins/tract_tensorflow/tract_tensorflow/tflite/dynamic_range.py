"""Data in floats by weights in bytes: the data come into bytes first, in steps that a run finds, as TFLite does it.

The sums of products of bytes are exact; results differ from products with dequantised weights by the steps of the data,
which are about a hundredth of the largest number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.errors import CorruptModel
from tract_core.frozen import frozen
from tract_core.ops.conv import Conv
from tract_core.ops.elementwise import Round
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.wiring import Wiring


@frozen
class InBytes:
    """Numbers as (integers - zero) * scale: i8, i32 and f32; no ``zero`` where that is 0. All have as many axes."""

    integers: Wired
    scale: Wired
    zero: Wired | None


def in_bytes(x: Wired, axes: Sequence[int], *, asymmetric: bool) -> InBytes:
    """Data in f32 with a scale for each place of the other axes: that of the largest distance from 0, or of a span.

    Raises FactError.
    """
    return _by_span(x, axes) if asymmetric else _by_distance(x, axes)


def _by_distance(x: Wired, axes: Sequence[int]) -> InBytes:
    """From -127 to 127."""
    most = abs(x).max(axes)
    is_flat = most.eq(0)
    most = is_flat.where(127, most)
    steps = (x * (127 / most)).op(Round()).maximum(-127).minimum(127)
    return InBytes(steps.cast(DatumType.I8), most / 127, None)


def _by_span(x: Wired, axes: Sequence[int]) -> InBytes:
    """From -128 to 127, of the least to the largest number, with a zero point where that end lies that is nearer."""
    low, high = (end.cast(DatumType.F64) for end in (x.min(axes).minimum(0), x.max(axes).maximum(0)))
    scale = low.eq(high).where(1, (high - low) / 255)
    below, above = low / scale, high / scale
    is_low_nearer = abs(below) + 128 < abs(above) + 127
    zero = is_low_nearer.where(-128 - below, 127 - above).op(Round()).maximum(-128).minimum(127)
    one = scale.cast(DatumType.F32)
    steps = (x * (1 / one) + zero.cast(DatumType.F32)).op(Round()).maximum(-128).minimum(127)
    return InBytes(steps.cast(DatumType.I8), one, zero.cast(DatumType.I32))


@frozen
class ByteWeights:
    """Weights as integers * scales: i8; f32, one or one for each output."""

    integers: Wired
    scales: Array

    __eq__ = object.__eq__  # arrays are not compared
    __hash__ = object.__hash__

    def of_outputs(self, rank: int, to: int) -> Array:
        """The scales in so many axes, along one of them."""
        return self.scales.reshape([-1 if axis == to else 1 for axis in range(rank)])


def byte_weights(wire: Wiring, slot: int, weights: Wired, axis: int) -> ByteWeights | None:
    """Weights in i8 or i4 beside data in floats. ``axis``: of their scales in the file. Raises CorruptModel.

    ``None`` for others, and for those with zero points, or scales by blocks, which TFLite's kernels do not have: these
    are dequantised.
    """
    kinds = (DatumType.I8, DatumType.I4)
    if wire.dtype(wire.input(0)) is not DatumType.F32 or weights.dtype not in kinds:
        return None
    if wire.node.input(slot).blocks is not None:
        return None
    found = wire.node.quantization(slot)
    if found.zeros.any():
        return None
    if found.scales.size > 1 and found.axis != axis:
        raise CorruptModel(f"the scales of weights lie along axis {found.axis}, wanted {axis}")
    known = wire.constant(weights.outlet)
    integers = weights.cast(DatumType.I8) if known is None else weights.operand(known.astype(np.int8))
    return ByteWeights(integers, found.scales.astype(np.float32))


def as_floats(sums: Wired, data: InBytes, weights: ByteWeights, whole: Wired | None, to: int) -> Wired:
    """Sums of products of integers as numbers. ``whole``: those of the weights alone, where the data have zero points.

    ``to``: the axis of outputs in the sums, along which there may be a scale for each.
    """
    if data.zero is not None and whole is not None:
        sums = sums - data.zero * whole
    return sums.cast(DatumType.F32) * data.scale * weights.of_outputs(sums.rank, to)


def convolved(wire: Wiring, op: Conv, weights: ByteWeights) -> Wired:
    """Images (batch, height, width, channels) by a kernel: each has a scale, a zero point where outputs have scales."""
    x = wire.tensor(0)
    data = in_bytes(x, range(1, x.rank), asymmetric=weights.scales.size > 1)
    nothing = x.operand(np.zeros((), np.int32))
    sums = data.integers.op(op, weights.integers, nothing)
    whole = None if data.zero is None else _ones(x).op(op, weights.integers, nothing)
    return as_floats(sums, data, weights, whole, x.rank - 1)


def _ones(x: Wired) -> Wired:
    """An image of ones: what it gives lacks what lies around."""
    shape = (1, *x.shape[1:])
    if any(is_symbolic(size) for size in shape):
        return x.operand(np.ones([1] * x.rank, np.int8)).broadcast(shape)
    return x.operand(np.ones([int(size) for size in shape], np.int8))
