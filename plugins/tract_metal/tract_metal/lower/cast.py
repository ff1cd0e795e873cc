"""Conversions between element types."""

from __future__ import annotations

import mlx.core as mx

from tract_core.data import QuantizedType
from tract_core.ops.cast import AsQuantized, Cast
from tract_core.ops.rounding import limits
from tract_core.plugins.tables import Rows
from tract_metal.elements import element_of, wide
from tract_metal.lower.binary import FLOATS
from tract_metal.site import Computed, Site, by_element
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Cast)
def lower_cast(op: Cast, site: Site) -> Computed | str:
    """Floats that become integers lose their fractions and stop at the ends, and not-a-number is 0."""
    to = element_of(op.to)
    assert to is not None, "it was looked at"
    if isinstance(op.to, QuantizedType):
        return "quantised numbers are made in f64"
    kind = op.to
    if to in FLOATS or not kind.is_integer():
        return by_element(lambda x: (x != 0) if to == mx.bool_ else x.astype(to))
    return by_element(lambda x: cut_into(x, to, *limits(kind.storage)) if x.dtype in FLOATS else x.astype(to))


def cut_into(x: mx.array, to: mx.Dtype, low: int, high: int) -> mx.array:
    """Floats without their fractions, in an integer type; not-a-number is 0. MLX itself wraps around."""
    x = wide(x)
    inside = (x > low) & (x < high + 1.0)
    plain = mx.where(inside, x, mx.zeros_like(x)).astype(to)
    ends = mx.where(x >= high + 1.0, mx.array(high, to), mx.where(x <= low, mx.array(low, to), mx.array(0, to)))
    return mx.where(inside, plain, ends)


@ROWS.row(METAL, AsQuantized)
def lower_as_quantized(op: AsQuantized, site: Site) -> Computed:
    """The integers themselves."""
    return by_element(lambda x: x)
