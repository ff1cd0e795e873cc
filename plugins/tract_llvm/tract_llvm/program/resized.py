"""Resized axes: by which fractions, which place of the input each position stands for, and what is read there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Final

import numpy as np

from tract_core.dims import Dim, ceil_div, comparison, dim_max
from tract_core.frozen import frozen
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import AxisScale, Coordinates, Resize, Sampling, Scales, nearby_fraction, places_of, taps_of

if TYPE_CHECKING:
    from tract_core.model.fact import TypedFact
    from tract_core.plugins.keys import Array


@frozen
class ResizedAxis:
    """One axis that is resized for sure, or may be. ``scale``: output positions per input position, as a fraction.

    ``region``: what is resized of it, where a crop is asked for. ``taps``: how many elements are blended, where that
    was read.
    ``place``: which axis it is.
    """

    place: int
    input: Dim
    output: Dim
    scale: tuple[Dim, Dim]
    region: tuple[Fraction, Fraction]
    taps: Dim | None = None

    @property
    def moves(self) -> bool:
        """Whether elements of it may go elsewhere."""
        return self.input != self.output or self.scale[0] != self.scale[1]

    @property
    def is_known(self) -> bool:
        """Whether its sizes are."""
        return all(isinstance(size, int) for size in (self.input, self.output, *self.scale))


def axes_of(op: Resize, data: TypedFact, result: TypedFact) -> list[ResizedAxis]:
    """The axes in order, with their scales."""
    before, after = data.shape, result.shape
    sizes, output = [before[axis] for axis in op.axes], [after[axis] for axis in op.axes]
    if isinstance(op.target, Scales):
        scales: list[tuple[Dim, Dim]] = [nearby_fraction(value).as_integer_ratio() for value in op.target.values]
    elif all(isinstance(size, int) for size in (*sizes, *output)):
        factors = op.target.factors([int(size) for size in sizes], [int(size) for size in output])
        scales = [factor.as_integer_ratio() for factor in factors]
    else:
        scales = list(zip(output, sizes, strict=True))
    regions = [op.sampling.region(number) for number in range(len(op.axes))]
    return sorted(map(ResizedAxis, op.axes, sizes, output, scales, regions), key=lambda one: one.place)


def why_unfit(op: Resize, axes: Sequence[ResizedAxis]) -> str | None:
    """Why native code cannot resize so."""
    if any(one.input == 0 and one.output != 0 for one in axes):
        return "sizes do not fit"
    if op.sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE and not all(_is_simple(one) for one in axes):
        return "native code wants known sizes for regions that are no simple fractions"
    if any(not one.is_known and isinstance(part, int) and part > _LARGEST for one in axes for part in one.scale):
        return "native code wants known sizes for factors that are fractions of so large numbers"
    return None


def _is_simple(axis: ResizedAxis) -> bool:
    """Whether positions times what the region is a fraction of surely fit 64 bits, where they must."""
    return axis.is_known or max(abs(part) for one in axis.region for part in one.as_integer_ratio()) <= _SIMPLE


_SIMPLE: Final = 4096
_LARGEST: Final = 1 << 40
"""What sizes are multiplied with, in 64 bits: enough for all factors that leave something of a tensor."""


def known_tables(sampling: Sampling, axis: ResizedAxis) -> tuple[Array, Array]:
    """What is read for each position of an axis whose sizes are known, and with which weights, as the meaning says.

    Both are [position, element]; -1 stands for a place outside of what is cropped.
    """
    a, b = map(int, axis.scale)
    scale = AxisScale(int(axis.input), int(axis.output), Fraction(a, b), axis.region)
    places = places_of(sampling.coordinates, scale)
    indices, factors = taps_of(sampling, scale, places)
    if sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE:
        indices[0] = np.where((places < 0) | (places > scale.input - 1), -1, indices[0])
    return np.ascontiguousarray(indices.T), np.ascontiguousarray(factors.T)


def taps_along(sampling: Sampling, axis: ResizedAxis) -> tuple[dict[str, Dim], Dim]:
    """What tells kernels how many elements are read for a position, and how many may be read for all of them.

    Those numbers are whether the axis stays as it is, and else how far away elements are read, as a fraction.
    """
    if sampling.interpolator is Interpolator.NEAREST:
        return _counted(1, 1, 1), axis.output
    half = sampling.interpolator.reach // 2
    a, b = axis.scale
    crops = sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE
    stays = 0 if crops else comparison(axis.input, "==", axis.output) * comparison(a, "==", b)
    if not sampling.antialias:
        return _counted(stays, half, 1), axis.output * (2 * half)
    top, bottom = dim_max(a, b) * half, dim_max(1, a)
    if axis.taps is not None:
        return _counted(stays, top, bottom), axis.taps * axis.output
    if isinstance(bottom, int):
        return _counted(stays, top, bottom), ceil_div(top, bottom) * 2 * axis.output
    return _counted(stays, top, bottom), (top + axis.output) * 2  # here a is the size of the output


def _counted(stays: Dim, top: Dim, bottom: Dim) -> dict[str, Dim]:
    return {"stays": stays, "reach_top": top, "reach_bottom": bottom}


_Places = tuple[Dim, Dim, Dim]
"""Output position o stands for the place (first + second * o) / third of the input, all whole numbers."""


def _half_pixel(axis: ResizedAxis) -> _Places:
    a, b = axis.scale
    return b - a, 2 * b, 2 * a


def _half_pixel_symmetric(axis: ResizedAxis) -> _Places:
    a, b = axis.scale
    return (1 - axis.output) * b + (axis.input - 1) * a, 2 * b, 2 * a


def _pytorch_half_pixel(axis: ResizedAxis) -> _Places:
    first, step, bottom = _half_pixel(axis)
    several = comparison(axis.output, ">", 1)
    return first * several, step * several, bottom


def _align_corners(axis: ResizedAxis) -> _Places:
    a, b = axis.scale
    length = a * axis.input
    return 0, (axis.input - 1) * b * comparison(length, ">", b), dim_max(1, length - b)


def _asymmetric(axis: ResizedAxis) -> _Places:
    a, b = axis.scale
    return 0, b, a


def _tf_half_pixel_for_nn(axis: ResizedAxis) -> _Places:
    a, b = axis.scale
    return b * (1 - comparison(a, "==", b)), 2 * b, 2 * a  # an axis that stays as it is, is not moved either


def _tf_crop_and_resize(axis: ResizedAxis) -> _Places:
    start, end = axis.region
    bottom = lcm(start.denominator, end.denominator)
    first, last = int(start * bottom), int(end * bottom)
    several, last_place = comparison(axis.output, ">", 1), axis.input - 1
    middle = (first + last) * (1 - several)  # where there is one position
    intervals = dim_max(1, axis.output - 1)
    return (
        (first * 2 * intervals * several + middle) * last_place,
        (last - first) * 2 * several * last_place,
        bottom * 2 * intervals,
    )


PLACES: Final[Mapping[Coordinates, Callable[[ResizedAxis], _Places]]] = {
    Coordinates.HALF_PIXEL: _half_pixel,
    Coordinates.HALF_PIXEL_SYMMETRIC: _half_pixel_symmetric,
    Coordinates.PYTORCH_HALF_PIXEL: _pytorch_half_pixel,
    Coordinates.ALIGN_CORNERS: _align_corners,
    Coordinates.ASYMMETRIC: _asymmetric,
    Coordinates.TF_HALF_PIXEL_FOR_NN: _tf_half_pixel_for_nn,
    Coordinates.TF_CROP_AND_RESIZE: _tf_crop_and_resize,
}
"""The places by the mode, as `tract_core.ops.resize` computes them in fractions."""
