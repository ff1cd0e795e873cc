"""Places between the elements of an axis, as `tract_core.ops.grid_sample` and `tract_core.ops.resize` mean them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tract_core.ops.grid_sample import FARTHEST, PaddingMode
from tract_core.ops.resize import NearestMode
from tract_llvm.functions.rounding import ceil, floor
from tract_llvm.language.function import where
from tract_llvm.language.values import Value

NEAREST: Final[Mapping[NearestMode, Callable[[Value], Value]]] = {
    NearestMode.ROUND_PREFER_FLOOR: lambda place: ceil(place - 0.5),
    NearestMode.ROUND_PREFER_CEIL: lambda place: floor(place + 0.5),
    NearestMode.FLOOR: floor,
    NearestMode.CEIL: ceil,
}
"""The whole number that stands for a place, where one element is read."""


def on_axis(coordinate: Value, size: Value, padding: PaddingMode, *, align_corners: bool) -> Value:
    """Where a coordinate from -1 to 1 is on an axis, in elements. One that is none is taken for -1."""
    has_end = padding is not PaddingMode.REFLECTION
    is_somewhere = coordinate.equals(coordinate) if has_end else (coordinate - coordinate).equals(0.0)
    coordinate = where(is_somewhere, coordinate, -1.0)
    place = (coordinate + 1.0) / 2.0 * (size - 1.0) if align_corners else ((coordinate + 1.0) * size - 1.0) / 2.0
    return where(place >= -FARTHEST, where(place < FARTHEST, place, FARTHEST), -FARTHEST)


def inside(index: Value, size: Value, padding: PaddingMode, *, align_corners: bool) -> Value:
    """Which element is read for a whole number, which may lie outside of the axis."""
    return _INSIDE[padding](index, size, align_corners)


def _clamp(index: Value, size: Value, align_corners: bool) -> Value:
    low = where(index > 0.0, index, 0.0)
    return where(low < size, low, size - 1.0)


def _reflect(index: Value, size: Value, align_corners: bool) -> Value:
    """Of whole numbers below 2**53, where the quotient tells all whole numbers apart."""
    if align_corners:
        period = where(size > 1.0, (size - 1.0) * 2.0, 1.0)
        return size - 1.0 - size.function.intrinsic("fabs", _modulo(index, period) - (size - 1.0))
    rest = _modulo(index, size * 2.0)
    mirrored = size * 2.0 - 1.0 - rest
    return where(rest < mirrored, rest, mirrored)


def _modulo(number: Value, period: Value) -> Value:
    return number - period * floor(number / period)


_INSIDE: Final[Mapping[PaddingMode, Callable[[Value, Value, bool], Value]]] = {
    PaddingMode.ZEROS: _clamp,
    PaddingMode.BORDER: _clamp,
    PaddingMode.REFLECTION: _reflect,
}
