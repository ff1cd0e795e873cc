"""Regions of images, each brought to one size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product as combinations
from typing import Final

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time, check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type, integers, wide
from tract_core.ops.extremes import LARGEST
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class RoiAlign(TypedOp):
    """Each region cut into ``height`` times ``width`` cells, of each of which some points are interpolated.

    Inputs: images [N, C, H, W]; regions [R, 4], as (x1, y1, x2, y2) in a picture ``scale`` times smaller than the
    images; the image of each region [R]. Output: [R, C, ``height``, ``width``]. A cell has ``samples`` points along
    each side, or, where that is 0, as many as it spans pixels. Its value is their mean. With ``largest``, it is the
    largest of the pixels around its points, each pixel times its weight in the interpolation, as the standard has it.
    ``half_pixel``: pixel 0 has its centre at 0.5 of the regions' coordinates; otherwise regions are at least 1 long.
    """

    height: int
    width: int
    scale: float
    samples: int
    largest: bool = False
    half_pixel: bool = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One small image per region. Raises FactError when the inputs do not go together."""
        x, regions, image_of = arity(self, inputs, 3)
        integers(self, image_of, "images of the regions")
        if image_of.rank != 1 or not may_equal(image_of.shape[0], regions.shape[0]):
            raise FactError(f"RoiAlign wants one image per region, found {image_of} for {regions}")
        return (_per_region(self, x, regions, 4, (self.height, self.width)),)


@frozen
class MaxRoiPool(TypedOp):
    """The largest pixels of the ``height`` times ``width`` cells of each region.

    Inputs: images [N, C, H, W]; regions [R, 5], as (image, x1, y1, x2, y2) in a picture ``scale`` times smaller than
    the images. Both corners, rounded to pixels, belong to the region; a cell has all pixels that it touches, and is 0
    where it has none. Output: [R, C, ``height``, ``width``].
    """

    height: int
    width: int
    scale: float

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One small image per region. Raises FactError when the inputs do not go together."""
        x, regions = arity(self, inputs, 2)
        return (_per_region(self, x, regions, 5, (self.height, self.width)),)


def _per_region(op: TypedOp, x: TypedFact, regions: TypedFact, numbers: int, size: tuple[int, int]) -> TypedFact:
    if float_type(op, x).rank != 4:
        raise FactError(f"{op.name} wants images of shape [N, C, H, W], found {x}")
    if min(size) < 1:
        raise FactError(f"{op.name} wants one cell or more along each side, found {size[0]} times {size[1]}")
    if regions.rank != 2 or not may_equal(regions.shape[1], numbers):
        raise FactError(f"{op.name} wants regions of shape [R, {numbers}], found {regions}")
    return x.with_shape((regions.shape[0], x.shape[1], *size))


@ROWS.row(REFERENCE, RoiAlign)
def roi_align(op: RoiAlign, x: Array, regions: Array, image_of: Array) -> Array:
    """The points of one region after the other, computed in f64 and rounded once"""
    found = np.zeros((len(regions), x.shape[1], op.height, op.width))
    for place, (region, image) in enumerate(zip(regions.astype(np.float64), image_of.tolist(), strict=True)):
        shift = 0.5 if op.half_pixel else 0.0
        x1, y1, x2, y2 = (region * op.scale - shift).tolist()
        shortest = -math.inf if op.half_pixel else 1.0
        check_run_time()
        sides = (y1, max(y2 - y1, shortest), op.height), (x1, max(x2 - x1, shortest), op.width)
        row_count, column_count = (_count(length, cells, op.samples) for _, length, cells in sides)
        check_tensor((4, x.shape[1], op.height * row_count, op.width * column_count), 8)
        rows, columns = (_points(*side, count) for side, count in zip(sides, (row_count, column_count), strict=True))
        parts = np.stack(list(_weighted(_image(x, image), rows, columns)))
        values = LARGEST.along(parts, (0,))[0] if op.largest else parts.sum(axis=0)
        cells = values.reshape(x.shape[1], op.height, row_count, op.width, column_count)
        if row_count and column_count:
            found[place] = LARGEST.along(cells, (2, 4))[:, :, 0, :, 0] if op.largest else cells.mean(axis=(2, 4))
    return found.astype(x.dtype)


def _image(x: Array, image: float) -> Array:
    if not 0 <= image < len(x):
        raise RunError(f"a region is in image {image:g}, there are {len(x)}")
    return x[int(image)].astype(np.float64)


def _count(length: float, cells: int, samples: int) -> int:
    """How many points each cell has along one side.

    A region without an end, or whose end is no number, has none where their number depends on its length.
    """
    return samples if samples > 0 else max(math.ceil(length / cells), 0) if math.isfinite(length) else 0


def _points(start: float, length: float, cells: int, count: int) -> Array:
    """The places of the points of all cells along one side, ``count`` for each."""
    found: Array = start + (np.arange(cells * count) + 0.5) * (length / cells / max(count, 1))
    return found


def _weighted(image: Array, rows: Array, columns: Array) -> Iterator[Array]:
    """For each point, each of the four pixels around it times its weight; points off the image have weight 0."""
    down, across = _neighbours(rows, image.shape[1]), _neighbours(columns, image.shape[2])
    for (row, row_weight), (column, column_weight) in combinations(down, across):
        yield image[:, row[:, None], column] * (row_weight[:, None] * column_weight)


def _neighbours(places: Array, size: int) -> list[tuple[Array, Array]]:
    """The pixels before and after each place, and their weights. Up to 1 off the image, the border goes on.

    What is not a number is off the image.
    """
    inside = (places >= -1) & (places <= size)
    places = np.clip(np.where(inside, places, 0), 0, size - 1)
    before = np.floor(places).astype(np.int64)
    part = places - before
    return [(before, (1 - part) * inside), (np.minimum(before + 1, size - 1), part * inside)]


_FAR: Final = float(1 << 30)
"""How far away corners count, in pixels; what is no number is at 0."""


@ROWS.row(MEMORY, RoiAlign)
def memory(op: RoiAlign, made: int, x: Array, regions: Array, image_of: Array) -> int:
    """All cells in f64, one image, and the points of the largest region: four parts, twice, and their sum"""
    cells = len(regions) * x.shape[1] * op.height * op.width
    points = x.shape[1] * op.height * op.width * op.samples**2
    if not op.samples and len(regions):
        spans = np.nan_to_num(np.abs(regions[:, 2:].astype(np.float64) - regions[:, :2]) * op.scale, posinf=0, neginf=0)
        points = int(x.shape[1] * np.add(spans, [op.width, op.height]).prod(-1).max())
    return 8 * (cells + x.size // max(len(x), 1) + 9 * points) + made


@ROWS.row(REFERENCE, MaxRoiPool)
def max_roi_pool(op: MaxRoiPool, x: Array, regions: Array) -> Array:
    """The cells of one region after the other."""
    found = np.zeros((len(regions), x.shape[1], op.height, op.width), dtype=x.dtype)
    scaled = regions.astype(wide(regions.dtype))  # in f64, 5 * 0.7 of f32 would no longer be the 3.5 that it is in f32
    for place, region in enumerate(scaled):
        check_run_time()
        image = _image(x, float(region[0])).astype(x.dtype)
        # Halves are rounded away from zero.
        corners = np.nan_to_num(region[1:] * region.dtype.type(op.scale)).clip(-_FAR, _FAR)
        x1, y1, x2, y2 = (np.sign(corners) * np.floor(np.abs(corners) + 0.5)).astype(np.int64).tolist()
        rows = _spans(y1, max(y2 - y1 + 1, 1), op.height, x.shape[2])
        columns = _spans(x1, max(x2 - x1 + 1, 1), op.width, x.shape[3])
        for (i, down), (j, across) in combinations(enumerate(rows), enumerate(columns)):
            cell = image[:, down, across]
            if cell.size:
                found[place, :, i, j] = LARGEST.along(cell, (1, 2))[:, 0, 0]
    return found


def _spans(start: int, length: int, cells: int, size: int) -> list[slice]:
    """For each cell along one side, the pixels that it touches."""
    edges = [(length * cell / cells, length * (cell + 1) / cells) for cell in range(cells)]
    bounds = [(start + math.floor(first), start + math.ceil(last)) for first, last in edges]
    return [slice(min(max(first, 0), size), min(max(last, 0), size)) for first, last in bounds]


@ROWS.row(MEMORY, MaxRoiPool)
def pool_memory(op: MaxRoiPool, made: int, x: Array, regions: Array) -> int:
    """All cells, an image in f64 and as it is, and the one before it"""
    return made + (8 + 2 * x.itemsize) * (x.size // max(len(x), 1))


@ROWS.row(COST, RoiAlign, MaxRoiPool)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One operation per output element: how many pixels a cell has, only a run tells."""
    return {f"FMA({inputs[0].datum_type.storage.name})": outputs[0].shape.volume}


@ROWS.row(AXES, RoiAlign)
def roi_align_axes(op: RoiAlign, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Regions and channels stay apart."""
    return AxesMapping.parse("ncij,rk,r->rchw")


@ROWS.row(AXES, MaxRoiPool)
def max_roi_pool_axes(op: MaxRoiPool, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Regions and channels stay apart."""
    return AxesMapping.parse("ncij,rk->rchw")
