"""Cases of grid sampling: each place is looked up by itself, in an image that is continued as far as it is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from tract_core.ops.grid_sample import GridSample, PaddingMode
from tract_core.ops.interpolate import Interpolator
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Array, Case

ROWS = Rows()


def _continued(image: Array, op: GridSample, place: Sequence[int]) -> float:
    """The element at a place that may lie outside."""
    inside: list[int] = []
    for at, size in zip(place, image.shape, strict=True):
        where = at
        if not 0 <= at < size:
            if op.padding_mode is PaddingMode.ZEROS:
                return 0.0
            while op.padding_mode is PaddingMode.REFLECTION and size > 1 and not 0 <= where < size:
                mirror = (0 if where < 0 else size - 1) if op.align_corners else (-0.5 if where < 0 else size - 0.5)
                where = int(2 * mirror - where)
        inside.append(min(max(where, 0), size - 1))
    return float(image[tuple(inside)])


def _cubic(distance: float) -> float:
    """The weights of the 4 neighbours, with a = -3/4, as two polynomials."""
    d = abs(distance)
    if d < 1:
        return 1.25 * d**3 - 2.25 * d**2 + 1
    return -0.75 * d**3 + 3.75 * d**2 - 6 * d + 3 if d < 2 else 0.0


_FAR = 1000.0
"""Beyond it, images as small as these go on as they are."""


def _weights(op: GridSample, coordinate: float, size: int) -> dict[int, float]:
    if math.isnan(coordinate) or (math.isinf(coordinate) and op.padding_mode is PaddingMode.REFLECTION):
        coordinate = -1.0
    coordinate = min(max(coordinate, -_FAR), _FAR)
    place = (coordinate + 1) / 2 * (size - 1) if op.align_corners else (coordinate + 1) / 2 * size - 0.5
    if op.mode is Interpolator.NEAREST:
        return {round(place): 1.0}
    below = math.floor(place)
    if op.mode is Interpolator.LINEAR:
        return {below: 1 - (place - below), below + 1: place - below}
    return {below + step: _cubic(below + step - place) for step in (-1, 0, 1, 2)}


def _expected(op: GridSample, x: Array, grid: Array) -> Array:
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, c, *place in np.ndindex(*result.shape):
        coordinates = reversed(grid[(n, *place)].tolist())
        along = [_weights(op, at, size).items() for at, size in zip(coordinates, x.shape[2:], strict=True)]
        for chosen in product(*along):
            weight = math.prod(part for _, part in chosen)
            result[(n, c, *place)] += weight * _continued(x[n, c], op, [index for index, _ in chosen])
    return result


def _case(op: GridSample, image: str = "B,C,H,W,f32", grid: str = "B,P,Q,2,f32") -> Case:
    corners = "corners" if op.align_corners else "edges"
    return Case(
        f"GridSample-{op.mode.value}-{op.padding_mode.value}-{corners}-{image}",
        op,
        [image, Arg(grid, low=-2.6, high=2.6)],
        lambda x, places: _expected(op, x, places),
        {"B": 2, "C": 2, "H": 4, "W": 3, "P": 3, "Q": 5},
    )


_ENDS = [math.nan, math.inf, -math.inf, -1.0, 1.0]
"""What a coordinate may be, besides a number: each of them, with each of them."""


def _ends(op: GridSample, kind: str) -> Case:
    grid = np.array([*product(_ENDS, _ENDS)]).reshape(5, 5, 2)
    case = _case(op, grid=f"1,5,5,2,{kind}")
    inputs = [Arg("1,C,H,W,f32"), Arg(f"1,5,5,2,{kind}", grid)]
    return replace(case, name=f"{case.name}-ends-{kind}", inputs=inputs)


_CASES = [
    *(_ends(GridSample(*chosen), "f32") for chosen in product(Interpolator, PaddingMode, (False, True))),
    *(_ends(GridSample(padding_mode=PaddingMode.REFLECTION), kind) for kind in ("f16", "bf16", "f64")),
    *(_case(GridSample(*chosen)) for chosen in product(Interpolator, PaddingMode, (False, True))),
    *(_case(GridSample(mode), "B,C,H,W,3,f32", "B,P,1,Q,3,f32") for mode in Interpolator),
    _case(GridSample(), "B,C,W,f32", "B,Q,1,f32"),
    _case(GridSample(), "B,C,H,W,f16", "B,P,Q,2,f32"),
    _case(GridSample(padding_mode=PaddingMode.REFLECTION, align_corners=True), "B,C,1,1,f32"),
]

ROWS.add(CASES, "grid_sample", _CASES)
