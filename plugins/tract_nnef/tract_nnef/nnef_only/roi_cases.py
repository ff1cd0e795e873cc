"""Cases of regions of images: each element of the output is computed by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case
from tract_nnef.nnef_only.roi import Method, Regions, RoiPool, RoiResample

ROWS = Rows()

Array = np.ndarray[Any, Any]

_REGIONS = [[0, 0, 6, 5], [1.2, 0.4, 4.5, 3.5], [-2, 3, 3, 9], [2, 2, 2, 2], [5.5, 4.5, 5.6, 4.9]]
_IMAGES = [0, 1, 1, 0, 1]


def _each(op: Regions, value: Callable[[Array, list[float], int, int], float]) -> Callable[..., Array]:
    """``value(one channel of an image, region, row, column)`` for each element."""

    def expected(x: Array, regions: Array, image_of: Array) -> Array:
        found = np.zeros((len(regions), x.shape[1], op.height, op.width))
        for r, c, i, j in np.ndindex(*found.shape):
            found[r, c, i, j] = value(x[int(image_of[r]), c], regions[r].tolist(), i, j)
        return found

    return expected


def _rounded(number: float) -> int:
    return int(math.copysign(math.floor(abs(number) + 0.5), number))


def _span(start: float, end: float, count: int, place: int, size: int) -> range:
    first, last = _rounded(start), _rounded(end)
    if last <= first:
        return range(0)
    low = first + place * (last - first) / count
    high = first + (place + 1) * (last - first) / count
    return range(max(math.floor(low), 0), min(math.ceil(high), size))


def _pool(op: RoiPool) -> Callable[..., Array]:
    def value(image: Array, region: list[float], i: int, j: int) -> float:
        left, top, right, bottom = region
        rows = _span(top, bottom, op.height, i, image.shape[0])
        columns = _span(left, right, op.width, j, image.shape[1])
        cell = [float(image[row, column]) for row in rows for column in columns]
        if not cell:
            return 0.0
        return max(cell) if op.largest else math.fsum(cell) / len(cell)

    return _each(op, value)


def _place(start: float, end: float, count: int, index: int, method: Method) -> float:
    if method is Method.ALIGNED:
        return start if count == 1 else start + (end - 1 - start) * index / (count - 1)
    step = (end - start) / count
    return start + (index + 0.5) * step - 0.5 if method is Method.SYMMETRIC else start + index * step


def _resample(op: RoiResample) -> Callable[..., Array]:
    def value(image: Array, region: list[float], i: int, j: int) -> float:
        left, top, right, bottom = region
        down, across = _place(top, bottom, op.height, i, op.method), _place(left, right, op.width, j, op.method)
        row, column = math.floor(down), math.floor(across)
        total = 0.0
        for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
            weight = (1 - abs(down - row - a)) * (1 - abs(across - column - b))
            y, x = (min(max(p, 0), size - 1) for p, size in zip((row + a, column + b), image.shape, strict=True))
            total += weight * float(image[y, x])
        return total

    return _each(op, value)


def _case(name: str, op: Regions, expected: Callable[..., Array], image: str = "B,2,H,W,f32") -> Case:
    inputs = [image, Arg("R,4,f32", _REGIONS), Arg("R,i64", _IMAGES)]
    return Case(f"{op.name}-{name}", op, inputs, expected, {"B": 2, "H": 5, "W": 6, "R": len(_REGIONS)})


_POOLS = [RoiPool(2, 3), RoiPool(2, 3, largest=True), RoiPool(1, 1, largest=True), RoiPool(7, 4)]
_SAMPLES = [*(RoiResample(3, 4, method) for method in Method), *(RoiResample(1, 9, method) for method in Method)]

ROWS.add(
    CASES,
    "roi",
    [
        *(_case(f"{op.height}x{op.width}-{op.largest}", op, _pool(op)) for op in _POOLS),
        *(_case(f"{op.height}x{op.width}-{op.method.value}", op, _resample(op)) for op in _SAMPLES),
        _case("f16", RoiResample(2, 2), _resample(RoiResample(2, 2)), "B,2,H,W,f16"),
    ],
)
