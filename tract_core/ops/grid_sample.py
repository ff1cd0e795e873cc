"""Samples of an image at places that another tensor gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, wide
from tract_core.ops.interpolate import Interpolator, blended_taps, nearest_tap
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

CUBIC_COEFFICIENT = -0.75
"""The ``a`` of the cubic kernel."""

FARTHEST = float(1 << 52)
"""How far away places count, in elements: up to here f64 tells all whole numbers apart, and their neighbours."""


class PaddingMode(Enum):
    """What is read outside the image: zeros, its nearest element, or its mirror image."""

    ZEROS = "zeros"
    BORDER = "border"
    REFLECTION = "reflection"


@frozen
class GridSample(TypedOp):
    """Interpolation of the input at the places that the grid gives.

    Inputs: an image with any number ``k`` of spatial axes (batch, channels, spatial axes); a grid of floats (batch,
    output axes, ``k``), whose last axis holds coordinates from -1 to 1, that of the last spatial axis first. -1 and 1
    stand for the centres of the first and last element with ``align_corners``, else for their outer edges. What is not
    a number stands for -1, as PyTorch documents it; with `REFLECTION` infinities do too, as mirror images go on.

    ``mode``: how elements between places are computed.
    """

    mode: Interpolator = Interpolator.LINEAR
    padding_mode: PaddingMode = PaddingMode.ZEROS
    align_corners: bool = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Batch and channels of the image, the grid's output axes. Raises FactError when the inputs do not fit."""
        x, grid = arity(self, inputs, 2)
        if x.rank < 3 or grid.rank != x.rank or not may_equal(grid.shape[-1], x.rank - 2):
            raise FactError(
                f"{self.name}: the image {x} wants a grid of rank {x.rank} with {x.rank - 2} coordinates in its last "
                f"axis, found {grid}"
            )
        if not grid.datum_type.is_float() or not x.datum_type.is_float():
            raise FactError(f"{self.name} wants an image and a grid of floating-point numbers, found {x} and {grid}")
        if not may_equal(x.shape[0], grid.shape[0]):
            raise FactError(f"{self.name}: the image {x} and the grid {grid} have batches of different sizes")
        return (x.with_shape([*x.shape[:2], *grid.shape[1:-1]]),)


@ROWS.row(REFERENCE, GridSample)
def reference(op: GridSample, x: Array, grid: Array) -> Array:
    """For each combination of neighbours along the axes, the elements there times their weights, added up."""
    data = x.astype(wide(x.dtype), copy=False)
    sizes = x.shape[2:]
    along = [_neighbours(op, size, grid[..., -1 - axis]) for axis, size in enumerate(sizes)]
    batch = np.arange(int(x.shape[0])).reshape(-1, *(1,) * len(sizes))
    result = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]), data.dtype)
    for chosen in product(*along):
        check_run_time()
        weight = np.prod([one.weight for one in chosen], axis=0).astype(data.dtype)[:, np.newaxis]
        is_there = np.logical_and.reduce([one.is_there for one in chosen])[:, np.newaxis]
        # Advanced indices around a slice: the channels come last, and go back to the second place.
        read = np.moveaxis(data[(batch, slice(None), *(one.index for one in chosen))], -1, 1)
        result += np.where(is_there, read, 0) * weight
    return result.astype(x.dtype, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Neighbour:
    """Elements along one axis that coordinates read: indices inside it, whether these are what is read, else 0."""

    index: Array
    is_there: Array
    weight: Array


def _neighbours(op: GridSample, size: int, coordinates: Array) -> list[_Neighbour]:
    """What coordinates read along one axis."""
    nowhere = ~np.isfinite(coordinates) if op.padding_mode is PaddingMode.REFLECTION else np.isnan(coordinates)
    coordinates = np.where(nowhere, -1.0, coordinates.astype(np.float64))
    places = (coordinates + 1) / 2 * (size - 1) if op.align_corners else ((coordinates + 1) * size - 1) / 2
    places = np.clip(places, -FARTHEST, FARTHEST)
    if op.mode is Interpolator.NEAREST:
        indices, weights = nearest_tap(places, np.rint)
    else:
        indices, weights = blended_taps(op.mode, places, CUBIC_COEFFICIENT)
    inside = _INSIDE[op.padding_mode](indices, size, op.align_corners)
    is_there = (indices == inside) | (op.padding_mode is not PaddingMode.ZEROS)
    return [_Neighbour(*one) for one in zip(inside, is_there, weights, strict=True)]


def _clamp(index: Array, size: int, align_corners: bool) -> Array:
    return np.clip(index, 0, size - 1)


def _reflect(index: Array, size: int, align_corners: bool) -> Array:
    """Mirrored at the centres of the outermost elements with ``align_corners``, else at their outer edges."""
    if align_corners:
        period = max(1, 2 * (size - 1))
        return size - 1 - np.abs(index % period - (size - 1))
    return np.minimum(index % (2 * size), 2 * size - 1 - index % (2 * size))


_INSIDE: Mapping[PaddingMode, Callable[[Array, int, bool], Array]] = {
    PaddingMode.ZEROS: _clamp,
    PaddingMode.BORDER: _clamp,
    PaddingMode.REFLECTION: _reflect,
}


@ROWS.row(MEMORY, GridSample)
def memory(op: GridSample, made: int, x: Array, grid: Array) -> int:
    """What is read for all channels, weighted and added up, and the neighbours along each axis with what makes them"""
    each, places, reach = wide(x.dtype).itemsize, grid.size // max(grid.shape[-1], 1), op.mode.reach
    channels = places * x.shape[1]
    neighbours = places * (17 * reach * grid.shape[-1] + 40 * reach + 24)
    narrow = each * x.size + made if each != x.itemsize else 0
    return 4 * each * channels + neighbours + narrow


@ROWS.row(COST, GridSample)
def cost(op: GridSample, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One multiplication and addition per element read."""
    reads = op.mode.reach ** (inputs[0].rank - 2)
    return {f"FMA({inputs[0].datum_type.storage.name})": outputs[0].shape.volume * reads}


@ROWS.row(AXES, GridSample)
def axes(op: GridSample, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Batch and channels of the image, the output axes of the grid."""
    mapping = AxesMapping.disconnected([fact.rank for fact in inputs], [outputs[0].rank])
    image, grid = mapping.inputs
    mapping = mapping.with_input(1, image[0] + grid[1:])
    return mapping.with_output(0, image[:2] + grid[1:-1])
