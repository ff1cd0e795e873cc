"""Interpolation at the places that a grid gives. Places are found with a fixed point: MLX has no f64 on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Final

import mlx.core as mx

from tract_core.ops.grid_sample import CUBIC_COEFFICIENT, GridSample, PaddingMode
from tract_core.ops.interpolate import Interpolator
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()

POINT: Final = 30
"""Binary digits behind the point of twice a place."""

FAR: Final = float(1 << 32)
"""Twice a place is no further than this from the image, which is outside of any."""

Neighbour = tuple[mx.array, mx.array, mx.array]
"""For each place along an axis, which element is read, whether there is one, and what it weighs."""


@ROWS.row(METAL, GridSample)
def lower_grid_sample(op: GridSample, site: Site) -> Callable[..., mx.array] | str:
    """For each combination of neighbours along the axes, the elements there times their weights, added up."""
    if op.padding_mode is PaddingMode.REFLECTION:
        return "mirror images of far places are found in f64"
    return lambda x, grid: mx.zeros(site.shape(), x.dtype) if 0 in (x.size, grid.size) else _sampled(op, x, grid)


def _sampled(op: GridSample, x: mx.array, grid: mx.array) -> mx.array:
    batch, channels, *sizes = x.shape
    rank = len(sizes)
    along = [list(_neighbours(op, size, grid[..., rank - 1 - axis])) for axis, size in enumerate(sizes)]
    flat = mx.reshape(wide(x), (batch, channels, -1))
    count = grid[..., 0].size // batch
    total = mx.zeros((batch, channels, count), flat.dtype)
    for chosen in product(*along):
        index, there, weight = chosen[0]
        for size, (other, is_there, factor) in zip(sizes[1:], chosen[1:], strict=True):
            index, there, weight = index * size + other, there & is_there, weight * factor
        index, there, weight = (mx.reshape(one, (batch, 1, count)) for one in (index, there, weight))
        read = mx.take_along_axis(flat, mx.broadcast_to(index, (batch, channels, count)), axis=2)
        total = total + mx.where(there, read, mx.zeros_like(read)) * weight
    return mx.reshape(total, (batch, channels, *grid.shape[1:-1])).astype(x.dtype)


def _neighbours(op: GridSample, size: int, coordinates: mx.array) -> Iterator[Neighbour]:
    """What coordinates read along one axis."""
    first, part = _places(op, size, coordinates)
    for step, weight in _weights(op, first, part):
        index = first + step
        inside = mx.clip(index, 0, size - 1)
        there = (index == inside) if op.padding_mode is PaddingMode.ZEROS else mx.ones(index.shape, mx.bool_)
        yield inside, there, weight


def _places(op: GridSample, size: int, coordinates: mx.array) -> tuple[mx.array, mx.array]:
    """The element before each place, in i64, and how far behind it the place is, in steps of 2**-(POINT + 1)."""
    c = wide(coordinates)
    c = mx.where(mx.isnan(c), mx.array(-1.0, mx.float32), c)
    far = FAR / max(size, 1)
    one, scale = 1 << POINT, float(1 << POINT)
    fixed = (mx.clip(c, -far, far) * scale).astype(mx.int64) + one
    twice = fixed * (size - 1) if op.align_corners else fixed * size - one
    first = mx.right_shift(twice, POINT + 1)
    return first, twice - mx.left_shift(first, POINT + 1)


def _weights(op: GridSample, first: mx.array, part: mx.array) -> Iterator[tuple[mx.array, mx.array]]:
    """Which neighbours are read, counted from the element before, and what they weigh."""
    half = 1 << POINT
    if op.mode is Interpolator.NEAREST:
        odd = mx.bitwise_and(first, 1)
        up = (part > half) | ((part == half) & (odd == 1))
        yield up.astype(mx.int64), mx.ones(first.shape, mx.float32)
        return
    d = part.astype(mx.float32) / float(2 * half)
    if op.mode is Interpolator.LINEAR:
        yield mx.zeros_like(first), 1 - d
        yield mx.ones_like(first), d
        return
    for step, distance in ((-1, 1 + d), (0, d), (1, 1 - d), (2, 2 - d)):
        yield mx.full(first.shape, step, mx.int64), _cubic(distance, far=step in (-1, 2))


def _cubic(d: mx.array, *, far: bool) -> mx.array:
    a = CUBIC_COEFFICIENT
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if far else ((a + 2) * d - (a + 3)) * d * d + 1
