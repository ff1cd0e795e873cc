"""Products of data in floats with weights in bytes: each row of the data is quantised by its own range.

Source: the hybrid kernels of LiteRT's reference.
"""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.ops.einsum import EinSum, accumulator
from tract_core.ops.elementwise import Round
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.wiring import Wiring


@frozen
class RowScales:
    """Of weights in bytes: ``values`` [rows], in f32. ``is_asymmetric``: whether data have a zero point too."""

    values: Array
    is_asymmetric: bool

    __eq__ = object.__eq__  # arrays are not compared
    __hash__ = object.__hash__


def weights_of(wire: Wiring, slots: list[int], *, is_asymmetric: bool) -> tuple[Wired, RowScales | None]:
    """Weights [rows, inputs], those of several tensors below one another; in floats, or i8 with their scales."""
    tensors = [wire.tensor(slot) for slot in slots]
    for one in tensors:
        if one.rank != 2:
            raise CorruptModel(f"the weights of a recurrent network are {one.fact}, wanted two axes")
    if all(one.dtype.is_float() for one in tensors):
        return _below_another(tensors), None
    kinds = {one.dtype.storage for one in tensors}
    if not kinds <= {DatumType.I8, DatumType.U8}:
        raise Unsupported(f"weights are of types {', '.join(sorted(kind.short for kind in kinds))}, wanted f32 or i8")
    scales = [
        np.full(int(np.shape(wire.known(one.outlet, "weights in bytes"))[0]), wire.node.quantization(slot).scale)
        for slot, one in zip(slots, tensors, strict=True)
    ]
    plain = [_as_i8(wire, one) for one in tensors]
    return _below_another(plain), RowScales(np.concatenate(scales).astype(np.float32), is_asymmetric)


def _as_i8(wire: Wiring, one: Wired) -> Wired:
    """Older files say u8, and mean i8."""
    return one if one.dtype is DatumType.I8 else one.operand(wire.known(one.outlet, "weights in bytes").view(np.int8))


def _below_another(tensors: list[Wired]) -> Wired:
    return tensors[0].concat(tensors[1:], 0) if len(tensors) > 1 else tensors[0]


def dequantised(wire: Wiring, slot: int) -> Wired:
    """What only stands beside data, in floats."""
    x = wire.tensor(slot)
    return x if x.dtype.is_float() else x.cast(DatumType.F32) * np.float32(wire.node.quantization(slot).scale).item()


def product(x: Wired, weights: Wired, scales: RowScales | None) -> Wired:
    """``x`` [..., inputs] times ``weights`` [rows, inputs]."""
    before = "xyz"[: x.rank - 1]
    axes = AxesMapping.parse(f"{before}i,gi->{before}g")
    if scales is None:
        return x.op(EinSum(axes, accumulator(x.dtype)), weights)
    integers, scale, zero = _by_own_range(x, is_asymmetric=scales.is_asymmetric)
    total = integers.op(EinSum(axes, DatumType.I32), weights)
    if zero is not None:
        total = total - zero * weights.cast(DatumType.I32).sum([1]).squeeze([1])
    return total.cast(DatumType.F32) * (scale * x.operand(scales.values))


def _by_own_range(x: Wired, *, is_asymmetric: bool) -> tuple[Wired, Wired, Wired | None]:
    """Each row in i8, with its scale and its zero point [..., 1]; there is none where the range has 0 in its middle."""
    last = [x.rank - 1]
    if not is_asymmetric:
        reach = abs(x).max(last)
        empty = reach.eq(0)
        inverse = empty.where(0.0, 127.0 / empty.where(1.0, reach))
        integers = (x * inverse).op(Round()).maximum(-127).minimum(127).cast(DatumType.I8)
        return integers, empty.where(1.0, reach / 127.0), None
    low, high = (one.minimum(0) if end else one.maximum(0) for end, one in ((1, x.min(last)), (0, x.max(last))))
    low, high = low.cast(DatumType.F64), high.cast(DatumType.F64)
    empty = low.eq(high)
    scale = empty.where(1.0, (high - low) / 255.0)
    from_low, from_high = -128.0 - low / scale, 127.0 - high / scale
    is_low = (abs(low / scale) + 128.0) < (abs(high / scale) + 127.0)
    nudged = is_low.where(from_low, from_high).op(Round()).maximum(-128).minimum(127)
    scale, zero = scale.cast(DatumType.F32), empty.where(0.0, nudged)
    inverse = scale.reciprocal()
    steps = (zero.cast(DatumType.F32) + x * inverse).op(Round())
    integers = steps.maximum(-128).minimum(127).cast(DatumType.I8)
    return integers, scale, zero.cast(DatumType.I32)
