"""Steps that take parts of axes, put tensors together, and make axes longer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, is_symbolic
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.downsample import Downsample
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.ops.pad import Pad, PadConstant, PadEdge, PadMode, PadReflect
from tract_core.ops.scatter import ScatterElements, ScatterNd
from tract_core.ops.slice import Slice
from tract_core.ops.tile import Tile
from tract_core.testing.strategies.garden import Array, Garden, Meaning, Sizes, Traits, now


def _range(axis: int, start: Dim, end: Dim) -> Meaning:
    def meaning(sizes: Sizes, a: Array) -> Array:
        first, last = now(start, sizes), now(end, sizes)
        if not first <= last <= a.shape[axis]:
            raise IndexError(f"{first} to {last} of {a.shape[axis]}")
        return np.take(a, range(first, last), axis)

    return meaning


def _sliced(g: Garden, x: OutletId, axis: int, start: Dim, end: Dim) -> OutletId | None:
    return g.grow(Slice(axis, start, end), [x], _range(axis, start, end), g.traits[x], sized=True)


def slice_(g: Garden) -> OutletId | None:
    """From either end of an axis to either end, also of a symbolic one, where it fits in some runs only."""
    x = g.any(g.has_axis)
    if x is None:
        return None
    axis = g.axis(x)
    size = g.fact(x).shape[axis]
    symbolic: list[Dim] = [0, 1, 2, size, size - 1, size - 2]
    places = symbolic if is_symbolic(size) else range(int(size) + 1)
    return _sliced(g, x, axis, g.choose(places), g.choose([*places, size, size]))


def split(g: Garden) -> OutletId | None:
    """Two slices that follow one another, as gates are."""
    x = g.any(g.has_axis)
    if x is None:
        return None
    axis = g.axis(x)
    size = g.fact(x).shape[axis]
    middle: Dim = g.choose([1, 2, size - 1]) if is_symbolic(size) else g.integer(0, int(size))
    first = _sliced(g, x, axis, 0, middle)
    if first is None:
        return None
    g.pool.append(first)
    return _sliced(g, x, axis, middle, size)


def downsample(g: Garden) -> OutletId | None:
    """Every second or third element, or backwards."""
    x = g.any(g.has_axis)
    if x is None:
        return None
    axis, stride = g.axis(x), g.choose([2, 3, -1, -2])
    modulo = g.integer(0, 2) if stride > 0 else 0

    def meaning(a: Array) -> Array:
        if modulo > a.shape[axis]:
            raise IndexError(f"{modulo} of {a.shape[axis]}")
        places = list(range(a.shape[axis]))[modulo::stride] if stride > 0 else list(range(a.shape[axis]))[::stride]
        return np.take(a, np.array(places, int), axis)

    return g.grow(Downsample(axis, stride, modulo), [x], meaning, g.traits[x])


def concat(g: Garden) -> OutletId | None:
    """Two tensors of one type; where their other axes are not surely the same, some runs are refused."""
    a = g.any(g.has_axis)
    if a is None:
        return None
    axis, rank = g.axis(a), g.fact(a).rank
    b = g.any(lambda one: g.kind(one) is g.kind(a) and g.fact(one).rank == rank)
    assert b is not None  # a itself is there
    both = [a, b][: g.integer(1, 3)]

    def meaning(*arrays: Array) -> Array:
        return np.concatenate(arrays, axis)

    return g.grow(TypedConcat(axis), both, meaning, _common(g, both))


def _common(g: Garden, outlets: Sequence[OutletId]) -> Traits:
    traits = [g.traits[outlet] for outlet in outlets]
    flags = {name: all(getattr(one, name) for one in traits) for name in ("exact", "zeros", "whole")}
    return Traits(**flags, bound=max(one.bound for one in traits))


def _places(g: Garden, size: Dim, count: int) -> list[int]:
    end = 3 if is_symbolic(size) else int(size)
    found = [g.integer(-end, max(end - 1, 0)) for _ in range(count)]
    return [found[0] + step for step in range(count)] if count and g.chance(3) else found


def gather(g: Garden) -> OutletId | None:
    """Elements at places that are part of the model, or computed."""
    x = g.any(g.has_axis)
    if x is None:
        return None
    axis = g.axis(x)
    count = g.integer(0, 3)
    places = np.array(_places(g, g.fact(x).shape[axis], count), np.int64)
    computed = g.any(lambda one: g.kind(one) is DatumType.I64 and g.fact(one).rank < 3) if g.chance(3) else None
    chosen = g.constant(places.reshape(()) if count == 1 and g.chance(2) else places) if computed is None else computed
    return g.grow(Gather(axis), [x, chosen], partial(_take, axis=axis), g.traits[x])


def _take(x: Array, places: Array, axis: int) -> Array:
    if np.any((places < -x.shape[axis]) | (places >= x.shape[axis])):
        raise IndexError(f"{places.tolist()} of {x.shape[axis]}")
    if not x.shape[axis]:
        return np.zeros((*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]), x.dtype)
    return np.take(x, places, axis, mode="wrap")


def gather_nd(g: Garden) -> OutletId | None:
    """The element, or the row, at one place."""
    x = g.any(g.has_axis)
    if x is None:
        return None
    shape = g.fact(x).shape
    depth = g.integer(1, min(2, len(shape)))
    place = [_places(g, size, 1)[0] for size in shape[:depth]]

    def meaning(a: Array, i: Array) -> Array:
        for index in i.tolist():
            a = _take(a, np.array(index), 0)
        return a

    return g.grow(GatherNd(0), [x, g.constant(np.array(place, np.int64))], meaning, g.traits[x])


def gather_elements(g: Garden) -> OutletId | None:
    """An element for each place of a constant of the same rank."""
    x = g.any(lambda one: g.fact(one).rank in (1, 2))
    if x is None:
        return None
    shape, axis = g.fact(x).shape, g.axis(x)
    counts = [g.integer(0, 2) if is_symbolic(size) else g.integer(0, int(size)) for size in shape]
    places = np.array(_places(g, shape[axis], int(np.prod(counts))), np.int64).reshape(counts)

    def meaning(a: Array, i: Array) -> Array:
        result = np.zeros(i.shape, a.dtype)
        if any(count > size for at, (count, size) in enumerate(zip(i.shape, a.shape, strict=True)) if at != axis):
            raise IndexError(f"{i.shape} in {a.shape}")
        for place in np.ndindex(*i.shape):
            source = [*place]
            source[axis] = int(i[place])
            result[place] = _at(a, source)
        return result

    return g.grow(GatherElements(axis), [x, g.constant(places)], meaning, g.traits[x])


def _at(x: Array, place: Sequence[int]) -> Any:
    """An element; a negative coordinate counts from the end. Raises IndexError."""
    return x[tuple(place)]


def scatter_nd(g: Garden) -> OutletId | None:
    """Rows written at constant places; often a range of an axis, or all of it, in order."""
    x = g.any(lambda one: g.fact(one).rank in (1, 2))
    if x is None:
        return None
    size = g.fact(x).shape[0]
    count = g.integer(1, 3)
    start = g.integer(0, 2)
    rows = list(range(start, start + count)) if g.integer(0, 3) else _places(g, size, count)
    rank = g.fact(x).rank
    updates = g.any(lambda one: g.kind(one) is g.kind(x) and g.fact(one).rank == rank)
    if updates is None:
        return None

    def meaning(a: Array, i: Array, u: Array) -> Array:
        if u.shape != (len(i), *a.shape[1:]):
            raise ValueError(f"{u.shape} into {a.shape}")
        result = a.copy()
        for row, update in zip(i[:, 0].tolist(), u, strict=True):
            result[row] = update
        return result

    places = g.constant(np.array(rows, np.int64).reshape(count, 1))
    return g.grow(ScatterNd(), [x, places, updates], meaning, _common(g, [x, updates]))


def scatter_elements(g: Garden) -> OutletId | None:
    """Elements written to constant places along one axis."""
    x = g.any(lambda one: g.fact(one).rank == 1)
    if x is None:
        return None
    count = g.integer(0, 3)
    places = np.array(_places(g, g.fact(x).shape[0], count), np.int64)
    updates = g.any(lambda one: g.kind(one) is g.kind(x) and g.fact(one).rank == 1)
    if updates is None:
        return None

    def meaning(a: Array, i: Array, u: Array) -> Array:
        if u.shape != i.shape:
            raise ValueError(f"{u.shape} for {i.shape}")
        result = a.copy()
        for place, update in zip(i.tolist(), u, strict=True):
            result[place] = update
        return result

    return g.grow(ScatterElements(0), [x, g.constant(places), updates], meaning, _common(g, [x, updates]))


def pad(g: Garden) -> OutletId | None:
    """Zeros, or what is at the edge, before and behind an axis."""
    x = g.any(lambda one: g.has_axis(one) and g.kind(one).is_number())
    if x is None:
        return None
    axis, rank = g.axis(x), g.fact(x).rank
    before, after = g.integer(0, 2), g.integer(0, 1)
    zero = np.zeros((), g.kind(x).numpy)
    modes: list[tuple[PadMode, Any]] = [
        (PadConstant(Constant(zero)), "constant"),
        (PadEdge(), "edge"),
        (PadReflect(), "reflect"),
    ]
    mode, name = g.choose(modes)
    pads = tuple((before, after) if at == axis else (0, 0) for at in range(rank))
    return g.grow(Pad(pads, mode), [x], partial(np.pad, pad_width=pads, mode=name), g.traits[x])


def tile(g: Garden) -> OutletId | None:
    """An axis repeated; now and then as often as a symbol says."""
    x = g.any(g.has_axis)
    if x is None:
        return None
    axis = g.axis(x)
    counts: list[Dim] = [1] * g.fact(x).rank
    counts[axis] = g.choose([1, 2, *g.symbols[:1]])

    def meaning(sizes: Sizes, a: Array) -> Array:
        return np.tile(a, [now(count, sizes) for count in counts])

    return g.grow(Tile(tuple(counts)), [x], meaning, g.traits[x], sized=True)


STEPS: Final = [
    *(slice_, slice_, slice_, split, split, downsample, concat, concat, gather, gather, gather_nd, gather_elements),
    *(scatter_nd, scatter_elements, pad, tile),
]
