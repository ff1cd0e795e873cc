"""Axes of other lengths. Which elements are read, and what they weigh, is found by the core, in NumPy."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import AxisScale, Coordinates, Resize, keeps, places_of, taps_of
from tract_core.plugins.tables import Rows
from tract_metal.elements import to_mlx, wide
from tract_metal.layout import Laid, along
from tract_metal.site import Computed, Site, laid
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Resize)
def lower_resize(op: Resize, site: Site) -> Computed | str:
    """Axis by axis."""
    nearest = op.sampling.interpolator is Interpolator.NEAREST
    if not nearest and not site.facts[0].datum_type.is_float():
        return "integers are blended in f64"
    return laid(lambda x: _resized(op, site, x, nearest=nearest))


def _resized(op: Resize, site: Site, x: Laid, *, nearest: bool) -> Laid:
    sizes = [x.shape[axis] for axis in op.axes]
    output = [int(size) for size in op.target.output(op, sizes)]
    if any(new and not old for new, old in zip(output, sizes, strict=True)):
        site.refuse_where(mx.array(True))
    if 0 in site.shape() or x.array.size == 0:
        return Laid.plain(mx.zeros(site.shape(), x.array.dtype))
    factors, kind = op.target.factors(sizes, output), x.array.dtype
    found, outside = x.array if nearest else wide(x.array), mx.array(False)
    for index, axis in enumerate(op.axes):
        scale = AxisScale(sizes[index], output[index], factors[index], op.sampling.region(index))
        if keeps(op.sampling.coordinates, scale):
            continue
        places, place = places_of(op.sampling.coordinates, scale), x.order.index(axis)
        found = _along(op, scale, places, found, place, nearest=nearest)
        if op.sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE:
            missed = to_mlx((places < 0) | (places > scale.input - 1))
            outside = outside | along(missed, place, found.ndim)
    if op.sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE:
        found = mx.where(outside, mx.array(op.sampling.extrapolation_value).astype(found.dtype), found)
    return Laid(found.astype(kind), x.order)


def _along(
    op: Resize, scale: AxisScale, places: np.ndarray[Any, Any], x: mx.array, axis: int, *, nearest: bool
) -> mx.array:
    indices, weights = taps_of(op.sampling, scale, places)
    if nearest:
        return mx.take(x, mx.array(indices[0]), axis=axis)
    total = mx.zeros((), x.dtype)
    for index, weight in zip(indices, weights, strict=True):
        total = total + mx.take(x, mx.array(index), axis=axis) * along(mx.array(weight.astype("f4")), axis, x.ndim)
    return total
