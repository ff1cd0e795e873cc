"""Cases of resizing: written-down indices for the nearest element, a dense matrix per axis for the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import (
    AspectPolicy,
    Coordinates,
    DynResize,
    NearestMode,
    Resize,
    Sampling,
    Scales,
    Sizes,
    TargetKind,
)
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Array, Case

ROWS = Rows()

_SIZES: Final = {"B": 2, "H": 4, "W": 6, "S": 5, "P": 7, "Q": 3}
_SHAPE: Final = "B,2,H,W,f32"

LINEAR, CUBIC, NEAREST = Interpolator.LINEAR, Interpolator.CUBIC, Interpolator.NEAREST


def _nearest(mode: NearestMode, coordinates: Coordinates, target: Scales | Sizes, taken: Sequence[int]) -> Case:
    op = Resize((1,), target, Sampling(NEAREST, coordinates, mode))
    name = f"Resize-nearest-{mode.value}-{coordinates.value}-{target}"
    return Case(name, op, ["B,S,3,f32"], lambda x: x[:, list(taken)], dict(_SIZES))


_FLOOR, _CEIL = NearestMode.FLOOR, NearestMode.CEIL
_PREFER_FLOOR, _PREFER_CEIL = NearestMode.ROUND_PREFER_FLOOR, NearestMode.ROUND_PREFER_CEIL
_ASYMMETRIC, _HALF = Coordinates.ASYMMETRIC, Coordinates.HALF_PIXEL

_NEAREST = [
    # at 0, 1/2, 1, 3/2 ...
    _nearest(_FLOOR, _ASYMMETRIC, Scales((2.0,)), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
    _nearest(_PREFER_FLOOR, _ASYMMETRIC, Scales((2.0,)), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
    _nearest(_PREFER_CEIL, _ASYMMETRIC, Scales((2.0,)), [0, 1, 1, 2, 2, 3, 3, 4, 4, 4]),
    _nearest(_CEIL, _ASYMMETRIC, Scales((2.0,)), [0, 1, 1, 2, 2, 3, 3, 4, 4, 4]),
    # at 0, 5/3, 10/3
    _nearest(_FLOOR, _ASYMMETRIC, Scales((0.6,)), [0, 1, 3]),
    _nearest(_PREFER_FLOOR, _ASYMMETRIC, Sizes((3,)), [0, 2, 3]),
    _nearest(_CEIL, _ASYMMETRIC, Sizes((3,)), [0, 2, 4]),
    # at 1/3, 2, 11/3
    _nearest(_FLOOR, _HALF, Scales((0.6,)), [0, 2, 3]),
    _nearest(_PREFER_FLOOR, _HALF, Sizes((symbol("S") - 2,)), [0, 2, 4]),
    # at -1/4, 1/4, 3/4 ...
    _nearest(_PREFER_FLOOR, _HALF, Scales((2.0,)), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
    _nearest(_FLOOR, _HALF, Scales((2.0,)), [0, 0, 0, 1, 1, 2, 2, 3, 3, 4]),
    # at 1/4, 3/4, 5/4 ...
    _nearest(_FLOOR, Coordinates.TF_HALF_PIXEL_FOR_NN, Scales((2.0,)), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
    _nearest(NearestMode.CEIL, Coordinates.TF_HALF_PIXEL_FOR_NN, Scales((1.0,)), [0, 1, 2, 3, 4]),
    # at 0, 4/9, 8/9, 12/9 ... 4
    _nearest(_PREFER_FLOOR, Coordinates.ALIGN_CORNERS, Scales((2.0,)), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
    _nearest(_PREFER_FLOOR, Coordinates.PYTORCH_HALF_PIXEL, Sizes((1,)), [0]),
    # at 0, 7/18, 14/18 ... 9*7/18 is 7/2 and goes up
    Case(
        "Resize-nearest-exact-half",
        Resize((0,), Sizes((18,)), Sampling(NEAREST, _ASYMMETRIC, _PREFER_CEIL)),
        ["7,f32"],
        lambda x: x[[0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6]],
    ),
    # 0.3 * 5 is 1; at 7/6, from the middle of the ideal 1.5 elements
    _nearest(_CEIL, _HALF, Scales((0.3,)), [2]),
    _nearest(_PREFER_FLOOR, _HALF, Scales((0.0001,)), []),
]

_TYPES = [
    Case(
        f"Resize-nearest-{kind}", Resize((1,), Scales((2.0,))), [f"B,S,{kind}"], lambda x: x.repeat(2, 1), dict(_SIZES)
    )
    for kind in ("f16", "i64", "u8", "bool")
]

PlaceOf = Callable[[float, int, int, float], float]
"""``(output position, input size, output size, factor) -> place in the input``"""

_PLACE: Final[dict[Coordinates, PlaceOf]] = {
    Coordinates.HALF_PIXEL: lambda x, _n, _m, f: (2 * x + 1 - f) / (2 * f),
    Coordinates.HALF_PIXEL_SYMMETRIC: lambda x, n, m, f: (x + 0.5 - m / 2) / f + n / 2 - 0.5,
    Coordinates.PYTORCH_HALF_PIXEL: lambda x, _n, m, f: (2 * x + 1 - f) / (2 * f) if m > 1 else 0.0,
    Coordinates.ALIGN_CORNERS: lambda x, n, _m, f: x * ((n - 1) / (n * f - 1)) if n * f > 1 else 0.0,
    Coordinates.ASYMMETRIC: lambda x, _n, _m, f: x / f,
}


def _weight(sampling: Sampling, distance: float, width: float) -> float:
    d, a = abs(distance) / width, sampling.cubic_coeff_a
    if sampling.interpolator is LINEAR:
        return max(0.0, 1 - d)
    if d < 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


def _matrix(sampling: Sampling, place: PlaceOf, n: int, m: int, factor: float) -> Array:
    """(m, n): how much of each input element is in each output element."""
    width = max(1.0, 1 / factor) if sampling.antialias else 1.0
    reach = math.ceil(2 * width) + 2
    matrix = np.zeros((m, n))
    for x in range(m):
        at = place(x, n, m, factor)
        for i in range(math.floor(at) - reach, math.ceil(at) + reach + 1):
            if 0 <= i < n or not sampling.exclude_outside:
                matrix[x, min(max(i, 0), n - 1)] += _weight(sampling, i - at, width)
    return matrix / matrix.sum(axis=1, keepdims=True)


def _blend(x: Array, sampling: Sampling, factors: Sequence[float], out: Sequence[int]) -> Array:
    """Resize the last axes."""
    place = _PLACE[sampling.coordinates]
    for axis, (factor, m) in enumerate(zip(factors, out, strict=True), start=x.ndim - len(out)):
        matrix = _matrix(sampling, place, x.shape[axis], m, factor)
        x = np.moveaxis(np.tensordot(x, matrix, (axis, 1)), -1, axis)
    return x


def _blended(sampling: Sampling, factors: tuple[float, float], out: tuple[int, int]) -> Case:
    op = Resize((2, 3), Scales(factors), sampling)
    how = "-".join(
        [sampling.interpolator.value, sampling.coordinates.value, *(["antialias"] if sampling.antialias else [])]
    )
    name = f"Resize-{how}-{sampling.cubic_coeff_a}-{sampling.exclude_outside}-{factors}"
    return Case(name, op, [_SHAPE], lambda x: _blend(x, sampling, factors, out), dict(_SIZES))


_BLENDED = [
    *(_blended(Sampling(*how), (2.0, 1.5), (8, 9)) for how in product((LINEAR, CUBIC), _PLACE)),
    *(_blended(Sampling(*how), (0.6, 0.25), (2, 1)) for how in product((LINEAR, CUBIC), _PLACE)),
    _blended(Sampling(CUBIC, cubic_coeff_a=-0.5), (2.0, 0.5), (8, 3)),
    _blended(Sampling(CUBIC, exclude_outside=True), (2.0, 0.5), (8, 3)),
    _blended(Sampling(LINEAR, antialias=True), (0.5, 0.4), (2, 2)),
    _blended(Sampling(LINEAR, antialias=True), (0.75, 2.0), (3, 12)),
    _blended(Sampling(CUBIC, antialias=True), (0.5, 0.4), (2, 2)),
    _blended(Sampling(CUBIC, antialias=True, exclude_outside=True), (0.5, 0.4), (2, 2)),
]

_CROP = Sampling(LINEAR, Coordinates.TF_CROP_AND_RESIZE, extrapolation_value=9.0)
_REGIONS = ((0.25, 0.75), (-1.0, 2.0))


def _cropped(x: Array) -> Array:
    """Along H (4 elements) places 0.75, 1.5, 2.25; along W (6 elements) places -5, 0, 5, 10."""
    first, second, third, fourth = (x[:, :, [row]] for row in range(4))
    rows = np.concatenate([(first + 3 * second) / 4, (second + third) / 2, (3 * third + fourth) / 4], axis=2)
    outside = np.full_like(rows[..., :1], 9.0)
    return np.concatenate([outside, rows[..., :1], rows[..., 5:], outside], axis=3)


def _dyn(name: str, op: DynResize, inputs: Sequence[str | Arg], expected: Any, **sizes: int) -> Case:
    return Case(f"DynResize-{name}", op, inputs, expected, {**_SIZES, **sizes})


def _ignoring_targets(expected: Callable[[Array], Array]) -> Callable[..., Array]:
    return lambda x, *_: expected(x)


def _stretched(x: Array) -> Array:
    return _blend(x, _LINEAR, (7 / 4, 3 / 6), (7, 3))


_P, _Q = symbol("P"), symbol("Q")
_LINEAR = Sampling(LINEAR)

_TARGETS = [
    Case("Resize-crop", Resize((2, 3), Sizes((3, 4)), replace(_CROP, roi=_REGIONS)), [_SHAPE], _cropped, dict(_SIZES)),
    Case(
        "Resize-sizes",
        Resize((2, 3), Sizes((2 * symbol("H") - 1, symbol("W") // 2)), _LINEAR),
        [_SHAPE],
        _stretched,
        dict(_SIZES),
    ),
    Case(
        "Resize-u8",
        Resize((0,), Scales((2.0,)), Sampling(LINEAR, Coordinates.ASYMMETRIC)),
        [Arg("3,u8", [1, 4, 255])],
        lambda _: np.array([1, 2, 4, 130, 255, 255]),
    ),
    Case(
        "Resize-u8-saturates",
        Resize((0,), Scales((2.0,)), Sampling(CUBIC, Coordinates.ASYMMETRIC)),
        [Arg("6,u8", [0, 0, 0, 255, 255, 255])],
        lambda _: np.array([0, 0, 0, 0, 0, 128, 255, 255, 255, 255, 255, 255]),
    ),
    Case("Resize-f16", Resize((2, 3), Sizes((7, 3)), _LINEAR), ["B,2,H,W,f16"], _stretched, dict(_SIZES)),
    Case(
        "Resize-not-larger",
        Resize((0, 1), Sizes((8, 9), AspectPolicy.NOT_LARGER), _LINEAR),
        ["4,6,f32"],
        lambda x: _blend(x, _LINEAR, (1.5, 1.5), (6, 9)),
    ),
    Case(
        "Resize-not-smaller",
        Resize((0, 1), Sizes((8, 9), AspectPolicy.NOT_SMALLER), _LINEAR),
        ["4,7,f32"],
        lambda x: _blend(x, _LINEAR, (2, 2), (8, 14)),
    ),
    _dyn(
        "sizes",
        DynResize((2, 3), TargetKind.SIZES, (_P, _Q), _LINEAR),
        [_SHAPE, Arg("2,i64", [7, 3])],
        _ignoring_targets(_stretched),
    ),
    _dyn(
        "scales",
        DynResize((3,), TargetKind.SCALES, (_Q,)),
        [_SHAPE, Arg("1,f32", [0.5])],
        _ignoring_targets(lambda x: x[..., [0, 2, 4]]),
    ),
    _dyn(
        "policy",
        DynResize((2, 3), TargetKind.SIZES, (_P, _Q), _LINEAR, AspectPolicy.NOT_LARGER),
        [_SHAPE, Arg("2,i64", [8, 9])],
        _ignoring_targets(lambda x: _blend(x, _LINEAR, (1.5, 1.5), (6, 9))),
        P=6,
        Q=9,
    ),
    _dyn(
        "crop",
        DynResize((2, 3), TargetKind.SIZES, (_P, _Q), _CROP),
        [_SHAPE, Arg("2,i64", [3, 4]), Arg("4,f32", [0.25, -1, 0.75, 2])],
        _ignoring_targets(_cropped),
        P=3,
        Q=4,
    ),
]

ROWS.add(CASES, "resize", [*_NEAREST, *_TYPES, *_BLENDED, *_TARGETS])
