"""Axes reduced to size 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import nan, prod
from typing import Final

import mlx.core as mx

from tract_core.ops.extremes import highest, lowest
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.layout import places_along
from tract_metal.lower.binary import FLOATS
from tract_metal.lower.extremes import in_order
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


def _total(x: mx.array, axes: Sequence[int]) -> mx.array:
    return mx.sum(x, axis=axes, keepdims=True).astype(x.dtype)


def _mean_of_squares(x: mx.array, axes: Sequence[int]) -> mx.array:
    return _total(x * x, axes) / prod(x.shape[axis] for axis in axes)


_MEANING: Final[Mapping[Reducer, tuple[Callable[[mx.array, Sequence[int]], mx.array], float]]] = {
    Reducer.SUM: (_total, 0),
    Reducer.PROD: (lambda x, axes: mx.prod(x, axis=axes, keepdims=True).astype(x.dtype), 1),
    Reducer.MEAN_OF_SQUARES: (_mean_of_squares, nan),
    Reducer.ALL: (lambda x, axes: mx.all(x, axis=axes, keepdims=True), True),
    Reducer.ANY: (lambda x, axes: mx.any(x, axis=axes, keepdims=True), False),
}
"""How many elements become one, and what nothing becomes: of tensors without elements, MLX may go on for ever."""

_EXTREMES: Final = (Reducer.MIN, Reducer.MAX)


@ROWS.row(METAL, Reduce)
def lower_reduce(op: Reduce, site: Site) -> Callable[[mx.array], mx.array]:
    """Narrow floats are computed in f32, and rounded once."""
    axes = list(op.axes)
    if op.reducer in _MEANING:
        return lambda x: _reduced(op.reducer, x, axes)
    if op.reducer in _EXTREMES:
        nothing = (highest if op.reducer is Reducer.MIN else lowest)(site.facts[0].datum_type.storage.numpy)
        return lambda x: _extreme(op.reducer, x, axes, nothing)
    return lambda x: _place(op.reducer, x, axes[0])


def _reduced(reducer: Reducer, x: mx.array, axes: list[int]) -> mx.array:
    function, nothing = _MEANING[reducer]
    if x.size == 0:
        return mx.full(_left(x, axes), nothing, x.dtype)
    if not axes:
        return function(wide(x)[None], [0])[0].astype(x.dtype)
    return function(wide(x), axes).astype(x.dtype)


def _left(x: mx.array, axes: Sequence[int]) -> list[int]:
    """The shape of a result."""
    return [1 if axis in axes else size for axis, size in enumerate(x.shape)]


def _extreme(reducer: Reducer, x: mx.array, axes: list[int], nothing: float) -> mx.array:
    if not axes:
        return x
    if x.size == 0:
        return mx.full(_left(x, axes), nothing, x.dtype)
    least = reducer is Reducer.MIN
    find = mx.min if least else mx.max
    if x.dtype == mx.bool_:
        return (mx.all if least else mx.any)(x, axis=axes, keepdims=True)
    return in_order(x, lambda keys: find(keys, axis=axes, keepdims=True), least=least)


def _place(reducer: Reducer, x: mx.array, axis: int) -> mx.array:
    """Not-a-number comes before all numbers."""
    last = reducer in (Reducer.ARG_MIN_LAST, Reducer.ARG_MAX_LAST)
    least = reducer in (Reducer.ARG_MIN_FIRST, Reducer.ARG_MIN_LAST)
    best = _extreme(Reducer.MIN if least else Reducer.MAX, x, [axis], 0)
    hit = (x == best) | (mx.isnan(x) if x.dtype in FLOATS else mx.zeros(x.shape, mx.bool_))
    if x.dtype in FLOATS:
        hit = mx.where(mx.isnan(best), mx.isnan(x), hit)
    count = x.shape[axis]
    places = places_along(x, axis)
    if last:
        return mx.max(mx.where(hit, places, mx.array(-1, mx.int64)), axis=axis, keepdims=True)
    return mx.min(mx.where(hit, places, mx.array(count, mx.int64)), axis=axis, keepdims=True)
