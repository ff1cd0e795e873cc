"""Numbers into small integers, and back."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.data import DatumType
from tract_core.ops.quantize import DequantizeLinear, LookupTable, OffsetI8asU8, OffsetU8asI8, QuantizeLinear
from tract_core.ops.rounding import limits
from tract_core.plugins.tables import Rows
from tract_metal.elements import element_of, written_in
from tract_metal.layout import along
from tract_metal.site import Computed, Site, by_element
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, QuantizeLinear)
def lower_quantize(op: QuantizeLinear, site: Site) -> Callable[..., mx.array] | str:
    """round(x / scale) + zero_point, the quotient taken in f32, half to even, saturated; not-a-number is 0"""
    to, (low, high) = element_of(op.to), limits(op.to) if op.to.is_integer() else (0, 0)
    if to is None or not op.to.is_integer() or op.to.itemsize > 2:
        return "MLX has no such small numbers"
    if site.facts[0].datum_type.is_integer():
        return "quotients of integers are taken in f64"

    def quantized(x: mx.array, scale: mx.array, zero: mx.array) -> mx.array:
        steps = mx.round(x.astype(mx.float32) / spread(op, scale, x).astype(mx.float32))
        steps = mx.where(mx.isnan(steps), mx.zeros_like(steps), steps)
        near = mx.clip(steps, -(1 << 17), 1 << 17).astype(mx.int32) + spread(op, zero, x).astype(mx.int32)
        return mx.clip(near, low, high).astype(to)

    return quantized


def spread(op: QuantizeLinear | DequantizeLinear, parameter: mx.array, x: mx.array) -> mx.array:
    """A parameter in a shape that stretches to that of x."""
    if parameter.ndim == 0:
        return parameter
    if not op.block:
        return along(parameter, op.axis, x.ndim)
    repeated = mx.repeat(parameter, op.block, axis=op.axis)
    return repeated[(*(slice(None),) * op.axis, slice(0, x.shape[op.axis]))]


@ROWS.row(METAL, DequantizeLinear)
def lower_dequantize(op: DequantizeLinear, site: Site) -> Callable[..., mx.array]:
    """(x - zero_point) * scale, in f32; the difference is exact"""
    to = element_of(op.to)
    assert to is not None, "it was looked at"

    def dequantized(x: mx.array, scale: mx.array, zero: mx.array) -> mx.array:
        exact = mx.int64 if x.dtype.size > 2 else mx.int32
        centred = x.astype(exact) - spread(op, zero, x).astype(exact)
        return (centred.astype(mx.float32) * spread(op, scale, x).astype(mx.float32)).astype(to)

    return dequantized


@ROWS.row(METAL, LookupTable)
def lower_lookup(op: LookupTable, site: Site) -> Callable[[mx.array], mx.array] | str:
    """table[byte]"""
    if element_of(DatumType.from_numpy(op.table.array.dtype)) is None:
        return "MLX has no such numbers"
    return lambda x: mx.take(written_in(op.table.array), x.astype(mx.uint8).astype(mx.int32), axis=0)


@ROWS.row(METAL, OffsetI8asU8, OffsetU8asI8)
def lower_offset(op: OffsetI8asU8 | OffsetU8asI8, site: Site) -> Computed:
    """The top bit flipped."""
    to = mx.uint8 if isinstance(op, OffsetI8asU8) else mx.int8
    return by_element(lambda x: mx.bitwise_xor(x.astype(mx.uint8), mx.array(128, mx.uint8)).astype(to))
