"""Regions of images, each brought to one size.

A region is an area of the image, in elements: the first one covers 0 to 1 on both axes, all of the image is (0, 0,
width, height).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import product as combinations

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time, check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type, integers
from tract_core.ops.extremes import LARGEST
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


class Method(Enum):
    """Where the elements of the output are: at the centres of equal cells, at their starts, or from corner to corner.

    For a region that is all of the image, this is what an upsampling of that name does.
    """

    SYMMETRIC = "symmetric"
    ASYMMETRIC = "asymmetric"
    ALIGNED = "aligned"


class Regions(TypedOp):
    """Base of the family.

    Inputs: images [N, C, H, W]; regions [R, 4], as (left, top, right, bottom); the image of each region [R]. Output:
    [R, C, ``height``, ``width``].
    """

    height: int
    width: int

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One small image per region. Raises FactError when the inputs do not go together."""
        x, regions, image_of = arity(self, inputs, 3)
        if float_type(self, x).rank != 4 or self.height < 1 or self.width < 1:
            raise FactError(f"{self.name} wants images of shape [N, C, H, W], found {x} for {self.height}x{self.width}")
        if float_type(self, regions).rank != 2 or not may_equal(regions.shape[1], 4):
            raise FactError(f"{self.name} wants regions of shape [R, 4], found {regions}")
        integers(self, image_of, "images of the regions")
        if image_of.rank != 1 or not may_equal(image_of.shape[0], regions.shape[0]):
            raise FactError(f"{self.name} wants one image per region, found {image_of} for {regions}")
        return (x.with_shape((regions.shape[0], x.shape[1], self.height, self.width)).without_value(),)


@frozen
class RoiPool(Regions):
    """Each region, its corners rounded to whole elements, cut into ``height`` times ``width`` cells.

    A cell has all elements that it touches; its value is their mean or, with ``largest``, the largest of them, and 0
    where it has none.
    """

    height: int
    width: int
    largest: bool = False


@frozen
class RoiResample(Regions):
    """Each region as ``height`` times ``width`` points, interpolated from the four elements around each.

    Beyond the border there are the elements at the edge.
    """

    height: int
    width: int
    method: Method = Method.SYMMETRIC


@ROWS.row(REFERENCE, RoiPool)
def roi_pool(op: RoiPool, x: Array, regions: Array, image_of: Array) -> Array:
    """The cells of one region after the other, computed in f64."""
    found = _results(op, x, regions)
    for place, (region, image) in enumerate(zip(_known(regions), image_of.tolist(), strict=True)):
        check_run_time()
        pixels = _image(x, image)
        # Halves are rounded away from zero, as `round` of the standard does.
        left, top, right, bottom = map(int, np.sign(region) * np.floor(np.abs(region) + 0.5))
        rows, columns = _cells(top, bottom, op.height, x.shape[2]), _cells(left, right, op.width, x.shape[3])
        for (i, down), (j, across) in combinations(enumerate(rows), enumerate(columns)):
            cell = pixels[:, down, across]
            if cell.size:
                value = LARGEST.along(cell, (1, 2)) if op.largest else cell.mean(axis=(1, 2), keepdims=True)
                found[place, :, i, j] = value[:, 0, 0]
    return found.astype(x.dtype)


def _cells(start: int, end: int, count: int, size: int) -> list[slice]:
    """For each cell along one side, the elements that it touches."""
    length = max(end - start, 0)
    ends = [(start + cell * length // count, start - (-(cell + 1) * length // count)) for cell in range(count)]
    return [slice(min(max(first, 0), size), min(max(last, 0), size)) for first, last in ends]


@ROWS.row(REFERENCE, RoiResample)
def roi_resample(op: RoiResample, x: Array, regions: Array, image_of: Array) -> Array:
    """Between the rows of one region after the other, then between its columns, computed in f64."""
    found = _results(op, x, regions)
    for place, (region, image) in enumerate(zip(_known(regions), image_of.tolist(), strict=True)):
        check_run_time()
        left, top, right, bottom = region.tolist()
        across = _blended(_image(x, image), 2, _places(left, right, op.width, op.method))
        found[place] = _blended(across, 1, _places(top, bottom, op.height, op.method))
    return found.astype(x.dtype)


@ROWS.row(MEMORY, RoiPool, RoiResample)
def memory(op: Regions, made: int, x: Array, regions: Array, image_of: Array) -> int:
    """All cells in f64, one image, and that with rows between its own"""
    image = x.size // max(len(x), 1)
    return 8 * (made // x.itemsize + 2 * image + x.shape[1] * x.shape[2] * op.width * 3) + made


def _results(op: Regions, x: Array, regions: Array) -> Array:
    shape = (len(regions), x.shape[1], op.height, op.width)
    check_tensor(shape, 8)
    return np.zeros(shape)


def _places(start: float, end: float, count: int, method: Method) -> Array:
    steps = np.arange(count)
    if method is Method.ALIGNED:
        return start + steps * ((end - 1 - start) / max(count - 1, 1))
    shift = 0.5 if method is Method.SYMMETRIC else 0.0
    return start + (steps + shift) * ((end - start) / count) - shift


def _blended(image: Array, axis: int, places: Array) -> Array:
    """What is at these places along an axis, between the elements before and after each."""
    size = image.shape[axis]
    if size == 0:
        raise RunError("a region is in an image without elements")
    places = np.clip(places, 0, size - 1)
    before = np.floor(places).astype(np.int64)
    part = (places - before).reshape([-1 if other == axis else 1 for other in range(image.ndim)])
    return image.take(before, axis) * (1 - part) + image.take(np.minimum(before + 1, size - 1), axis) * part


def _known(regions: Array) -> Array:
    """In f64; what is no number lies at 0."""
    return np.nan_to_num(regions.astype(np.float64))


def _image(x: Array, image: int) -> Array:
    if not 0 <= image < len(x):
        raise RunError(f"a region is in image {image}, there are {len(x)}")
    return x[image].astype(np.float64)


@ROWS.row(COST, Regions)
def cost(op: Regions, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Four operations per interpolated element, one per cell: how many elements a cell has, only a run tells."""
    each = 4 if isinstance(op, RoiResample) else 1
    return {f"FMA({inputs[0].datum_type.storage.name})": outputs[0].shape.volume * each}


@ROWS.row(AXES, Regions)
def axes(op: Regions, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Regions and channels stay apart."""
    return AxesMapping.parse("ncij,rk,r->rchw")
