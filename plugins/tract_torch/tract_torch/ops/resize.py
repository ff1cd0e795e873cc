"""Images, and anything else with places, resized by interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tract_core.dims import Dim, is_symbolic
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.gather import Gather
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.resize import Coordinates, NearestMode, Resize, Sampling, Scales, Sizes, nearby_fraction
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_NEAREST: Final = Sampling(Interpolator.NEAREST, Coordinates.ASYMMETRIC, NearestMode.FLOOR)
_NEAREST_EXACT: Final = Sampling(Interpolator.NEAREST, Coordinates.HALF_PIXEL, NearestMode.ROUND_PREFER_CEIL)


@aten(ROWS, *(f"aten.upsample_nearest{rank}d" for rank in (1, 2, 3)))
def nearest(call: Call, wire: NodeWiring) -> OutletId:
    """The element before each place"""
    return _nearest(call, wire, _NEAREST, 0.0)


@aten(ROWS, *(f"aten._upsample_nearest_exact{rank}d" for rank in (1, 2, 3)))
def nearest_exact(call: Call, wire: NodeWiring) -> OutletId:
    """The element that is nearest to the middle of each place"""
    return _nearest(call, wire, _NEAREST_EXACT, 0.5)


@aten(ROWS, "aten.upsample_linear1d", "aten.upsample_bilinear2d", "aten.upsample_trilinear3d")
def linear(call: Call, wire: NodeWiring) -> OutletId:
    """Between the elements around each place"""
    return _blended(call, wire, Interpolator.LINEAR)


@aten(ROWS, "aten.upsample_bicubic2d")
def cubic(call: Call, wire: NodeWiring) -> OutletId:
    """By a cubic between the four elements around each place"""
    return _blended(call, wire, Interpolator.CUBIC)


@aten(ROWS, "aten._upsample_bilinear2d_aa", "aten._upsample_bicubic2d_aa")
def antialiased(call: Call, wire: NodeWiring) -> OutletId:
    """Linear or cubic, of as many more elements as the image shrinks"""
    if call.flag("align_corners"):
        raise Unsupported("antialiasing with align_corners", hint="leave align_corners away")
    kind = Interpolator.LINEAR if "bilinear" in call.name else Interpolator.CUBIC
    sampling = Sampling(kind, cubic_coeff_a=-0.5, exclude_outside=True, antialias=True)
    return _resized(call, wire, sampling)


def _blended(call: Call, wire: NodeWiring, kind: Interpolator) -> OutletId:
    aligned = call.flag("align_corners")
    coordinates = Coordinates.ALIGN_CORNERS if aligned else Coordinates.HALF_PIXEL
    return _resized(call, wire, Sampling(kind, coordinates), by_sizes=aligned)


def _resized(call: Call, wire: NodeWiring, sampling: Sampling, *, by_sizes: bool = False) -> OutletId:
    """``by_sizes``: the factors do not count, only the sizes that they lead to."""
    x = _input(call)
    sizes, factors = call.shape()[2:], _factors(call)
    target = Sizes(sizes) if factors is None or by_sizes else Scales(tuple(factors))
    return wire.op(Resize(tuple(range(2, wire.rank(x))), target, sampling), x)


def _input(call: Call) -> OutletId:
    return call.input("input" if call.name.endswith(".vec") else "self")


def _factors(call: Call) -> list[float] | None:
    """Output elements per input element, on each axis, where these are given."""
    names = ("scale_factors",) if call.name.endswith(".vec") else ("scales", "scales_d", "scales_h", "scales_w")
    given = [call.value(name) for name in names if call.has(name)]
    if not given:
        return None
    values: Sequence[float] = given[0] if isinstance(given[0], (list, tuple)) else given
    return [float(one) for one in values]


def _nearest(call: Call, wire: NodeWiring, sampling: Sampling, shift: float) -> OutletId:
    """`Resize`, but for axes on which PyTorch, computing in f32, rounds to another element: these are gathered."""
    x, factors = _input(call), _factors(call)
    kept: list[int] = []
    for axis, size in enumerate(call.shape()[2:], 2):
        factor = None if factors is None else factors[axis - 2]
        places = _places(wire.shape(x)[axis], size, factor, shift)
        if places is not None:
            x = wire.op(Gather(axis), x, wire.const(places))
        else:
            kept.append(axis)
    if not kept:
        return x
    sizes = Sizes(tuple(call.shape()[axis] for axis in kept))
    target = sizes if factors is None else Scales(tuple(factors[axis - 2] for axis in kept))
    return wire.op(Resize(tuple(kept), target, sampling), x)


def _places(size: Dim, wanted: Dim, factor: float | None, shift: float) -> np.ndarray[Any, Any] | None:
    """The elements that PyTorch takes, where these are others than those of exact arithmetic."""
    if is_symbolic(size) or is_symbolic(wanted) or not int(wanted):
        return None
    step = np.float32(int(size) / int(wanted)) if factor is None else np.float32(1 / factor)
    theirs = np.floor((np.arange(int(wanted), dtype=np.float32) + np.float32(shift)) * step)
    theirs = np.minimum(theirs.astype(np.int64), int(size) - 1)
    ratio = nearby_fraction(factor) if factor is not None else None
    top, bottom = (int(size), int(wanted)) if ratio is None else (ratio.denominator, ratio.numerator)
    exact = np.minimum(((2 * np.arange(int(wanted)) + int(2 * shift)) * top) // (2 * bottom), int(size) - 1)
    return None if np.array_equal(theirs, exact) else theirs
