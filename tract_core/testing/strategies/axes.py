"""Steps that arrange elements in other axes, and that stretch axes of size 1."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from tract_core.dims import Dim, is_one, is_symbolic, product
from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.testing.strategies.garden import MAX_RANK, Array, Garden, Sizes, now


def add_axis(g: Garden) -> OutletId | None:
    """A new axis of size 1."""
    x = g.any(lambda one: g.fact(one).rank < MAX_RANK)
    if x is None:
        return None
    at = g.integer(0, g.fact(x).rank)
    return g.grow(AddAxis(at), [x], partial(np.expand_dims, axis=at), g.traits[x])


def rm_axis(g: Garden) -> OutletId | None:
    """An axis of size 1 removed; now and then one whose size is a symbol, which must then be 1."""
    x = g.any(lambda one: any(map(is_one, g.fact(one).shape))) if g.integer(0, 5) else g.any(g.has_axis)
    if x is None:
        return None
    shape = g.fact(x).shape
    axes = [axis for axis, size in enumerate(shape) if is_one(size)] or list(range(len(shape)))
    axis = g.choose(axes)
    return g.grow(RmAxis(axis), [x], partial(np.squeeze, axis=axis), g.traits[x])


def move_axis(g: Garden) -> OutletId | None:
    """An axis taken elsewhere."""
    x = g.any(g.has_axis)
    if x is None:
        return None
    source, target = g.axis(x), g.axis(x)
    return g.grow(MoveAxis(source, target), [x], partial(np.moveaxis, source=source, destination=target), g.traits[x])


def reshape(g: Garden) -> OutletId | None:
    """Two axes merged or turned round, one split; now and then into sizes that fit in some runs only."""
    x = g.any(g.has_axis)
    if x is None:
        return None
    shape = g.fact(x).shape
    at = g.axis(x)
    before = tuple(shape[at : at + g.integer(1, 2)])
    after = g.choose(_arrangements(g, before))
    traits = g.traits[x]

    def meaning(sizes: Sizes, a: Array) -> Array:
        end, wanted = at + len(before), [now(dim, sizes) for dim in after]
        if math.prod(a.shape[at:end]) != math.prod(wanted):  # NumPy does not mind where another axis is empty
            raise ValueError(f"{a.shape[at:end]} as {wanted}")
        return a.reshape((*a.shape[:at], *wanted, *a.shape[end:]))

    return g.grow(Reshape(at, before, after), [x], meaning, traits, sized=True)


def _arrangements(g: Garden, before: tuple[Dim, ...]) -> list[tuple[Dim, ...]]:
    total = product(before)
    found: list[tuple[Dim, ...]] = [(total,), before[::-1], (*before, 1), (1, *before)]
    if not is_symbolic(total) and int(total) % 2 == 0:
        found.append((2, int(total) // 2))
    if g.symbols and g.chance(4):
        found.append((*before[:-1], g.choose(g.symbols)))
    return found


def stretch(g: Garden) -> OutletId | None:
    """Axes of size 1 stretched; now and then an axis of symbolic size, which must be 1 or as large."""
    x = g.any(lambda one: any(map(is_one, g.fact(one).shape)))
    if x is None:
        return None
    target: list[Dim] = [g.choose([1, 3, *g.symbols[:1]]) if is_one(size) else size for size in g.fact(x).shape]
    if g.chance(5):
        target[g.axis(x)] = 3
    if g.chance(5):
        target.insert(0, g.choose([1, 2, *g.symbols]))

    def meaning(sizes: Sizes, a: Array) -> Array:
        wanted = [now(dim, sizes) for dim in target]
        return np.broadcast_to(a, np.broadcast_shapes(a.shape, tuple(wanted)))

    return g.grow(MultiBroadcastTo(tuple(target)), [x], meaning, g.traits[x], sized=True)


STEPS: Final = [add_axis, rm_axis, move_axis, move_axis, reshape, reshape, stretch]
