"""Cases of regions of images: each cell is computed by itself, point by point and pixel by pixel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tract_core.ops.roi_align import MaxRoiPool, RoiAlign
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Array, Case

ROWS = Rows()

_REGIONS = [[0, 0, 6, 5], [2.5, 1, 4, 7.5], [-3, -2, 3, 3], [5, 4, 5.5, 4.2], [1, 2, 9, 9]]
_IMAGES = [0, 1, 1, 0, 1]
_SIZES = {"N": 2, "C": 2, "H": 5, "W": 6, "R": 5}


def _interpolated(image: Array, y: float, x: float) -> float:
    """The image at a place: 0 more than a pixel off it, its border up to there."""
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):  # as all that is no number
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = math.floor(y), math.floor(x)
    found = 0.0
    for row, down in ((top, 1 - (y - top)), (min(top + 1, height - 1), y - top)):
        for column, across in ((left, 1 - (x - left)), (min(left + 1, width - 1), x - left)):
            found += float(image[row, column]) * down * across
    return found


def _cell(op: RoiAlign, image: Array, region: Sequence[float], i: int, j: int) -> float:
    """The mean of the points of one cell."""
    x1, y1, x2, y2 = (one * op.scale - (0.5 if op.half_pixel else 0) for one in region)
    least = -math.inf if op.half_pixel else 1
    height, width = max(y2 - y1, least) / op.height, max(x2 - x1, least) / op.width
    down, across = op.samples or math.ceil(height), op.samples or math.ceil(width)
    points = [
        _interpolated(image, y1 + (i + (k + 0.5) / down) * height, x1 + (j + (l + 0.5) / across) * width)
        for k in range(down)
        for l in range(across)
    ]
    return sum(points) / len(points)


def _aligned(op: RoiAlign, x: Array, regions: Array, image_of: Array) -> Array:
    found = np.zeros((len(regions), x.shape[1], op.height, op.width))
    for r, c, i, j in np.ndindex(*found.shape):
        found[r, c, i, j] = _cell(op, x[int(image_of[r]), c], regions[r].tolist(), i, j)
    return found


def _pooled(op: MaxRoiPool, x: Array, regions: Array) -> Array:
    """A pixel belongs to a cell if the two touch; corners of regions are pixels, halves away from 0."""
    found = np.zeros((len(regions), x.shape[1], op.height, op.width))
    for r, c, i, j in np.ndindex(*found.shape):
        image, *corners = regions[r].tolist()
        x1, y1, x2, y2 = (math.copysign(math.floor(abs(one * op.scale) + 0.5), one) for one in corners)
        height, width = max(y2 - y1 + 1, 1) / op.height, max(x2 - x1 + 1, 1) / op.width
        pixels = [
            x[int(image), c, row, column]
            for row, column in np.ndindex(*x.shape[2:])
            if i * height < row - y1 + 1 and row - y1 < (i + 1) * height
            if j * width < column - x1 + 1 and column - x1 < (j + 1) * width
        ]
        found[r, c, i, j] = max(pixels, default=0)
    return found


def _align(op: RoiAlign, kind: str = "f32") -> Case:
    return Case(
        f"RoiAlign-{op.samples}-{'half' if op.half_pixel else 'whole'}-{kind}",
        op,
        [f"N,C,H,W,{kind}", Arg(f"R,4,{kind}", _REGIONS), Arg("R,i64", _IMAGES)],
        lambda *inputs: _aligned(op, *inputs),
        _SIZES,
    )


_FAR = [
    *([math.nan if side == at else side for side in (0, 1, 2, 3)] for at in (0, 1, 2, 3)),
    *([(math.inf if at > 1 else -math.inf) if side == at else side for side in (0, 1, 2, 3)] for at in (0, 1, 2, 3)),
    [math.inf, 1, 2, 3],
    [0, 1, 1e30, 3],
    [-3e38, 1, 2, 3],
]
"""Regions that lack one of their ends."""


def _pooled_far(op: MaxRoiPool, x: Array, regions: Array) -> Array:
    """What is no number is 0, and an end that is not there far away."""
    return _pooled(op, x, np.nan_to_num(regions, nan=0, posinf=1e6, neginf=-1e6).clip(-1e6, 1e6))


_CASES = [
    *(
        Case(
            f"RoiAlign-far-{samples}",
            RoiAlign(2, 3, 1.0, samples),
            ["1,C,H,W,f32", Arg(f"{len(_FAR)},4,f32", _FAR), Arg(f"{len(_FAR)},i64", [0] * len(_FAR))],
            lambda *inputs, samples=samples: _aligned(RoiAlign(2, 3, 1.0, samples), *inputs),
            _SIZES,
        )
        for samples in (1, 2)
    ),
    Case(
        "RoiAlign-far-as many points as pixels",
        RoiAlign(2, 3, 1.0, 0),
        ["1,C,H,W,f32", Arg("8,4,f32", _FAR[:8]), Arg("8,i64", [0] * 8)],
        lambda x, *_: np.zeros((8, x.shape[1], 2, 3)),
        _SIZES,
    ),
    Case(
        "MaxRoiPool-far",
        MaxRoiPool(2, 3, 1.0),
        ["1,C,H,W,f32", Arg(f"{len(_FAR)},5,f32", [[0, *region] for region in _FAR])],
        lambda x, regions: _pooled_far(MaxRoiPool(2, 3, 1.0), x, regions),
        _SIZES,
    ),
    _align(RoiAlign(2, 3, 0.5, 2)),
    _align(RoiAlign(2, 2, 1.0, 0, half_pixel=False)),
    _align(RoiAlign(1, 2, 1.0, 3, half_pixel=False), "f64"),
    Case(
        "MaxRoiPool",
        MaxRoiPool(2, 3, 0.5),
        ["N,C,H,W,f32", Arg("R,5,f32", [[i, *region] for i, region in zip(_IMAGES, _REGIONS, strict=True)])],
        lambda x, regions: _pooled(MaxRoiPool(2, 3, 0.5), x, regions),
        _SIZES,
    ),
]

ROWS.add(CASES, "roi_align", _CASES)
