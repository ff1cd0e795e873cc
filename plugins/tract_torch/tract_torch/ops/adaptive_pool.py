"""Pools into as many windows as are asked for.

Window i of n goes from the floor of i size / n to the ceiling of (i + 1) size / n, so that windows overlap, and differ
in length, where the size is no multiple of n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, is_symbolic, product
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Lt, Min, Mul, Sub
from tract_core.ops.extremes import lowest
from tract_core.ops.gather import Gather, GatherElements
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, PoolSpec
from tract_core.ops.reduce import Reduce, Reducer, wire_mean
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_torch.ops.pool import with_items, with_places
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_MEANS = ("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")


@aten(ROWS, *(f"aten.{name}" for name in (*_MEANS, "_adaptive_avg_pool2d", "_adaptive_avg_pool3d")))
def adaptive_avg_pool(call: Call, wire: NodeWiring) -> OutletId:
    """The mean of each window"""
    x, wanted = call.input("self"), call.dims("output_size")
    first = wire.rank(x) - len(wanted)
    if all(size == 1 for size in wanted):
        return wire.through(wire_mean, x, tuple(range(first, wire.rank(x))))
    pool = _even(wire.shape(x)[first:], wanted)
    if pool is not None:
        return with_items(wire, x, SumPool(pool))[0]
    found = wire.cast(x, DatumType.F32) if wire.dtype(x).itemsize < 4 else x
    for axis, count in enumerate(wanted, first):
        found = _mean(wire, found, axis, count)
    return wire.cast(found, wire.dtype(x))


@aten(ROWS, "aten.adaptive_max_pool1d", "aten.adaptive_max_pool2d", "aten.adaptive_max_pool3d")
def adaptive_max_pool(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The largest element of each window, and its place in the channel"""
    x, wanted = call.input("self"), call.dims("output_size")
    first = wire.rank(x) - len(wanted)
    pool = _even(wire.shape(x)[first:], wanted)
    if pool is not None:
        return (
            with_places(wire, x, MaxPool(pool, DatumType.I64)) if call.reads(1) else with_items(wire, x, MaxPool(pool))
        )
    return _largest(wire, x, first, wanted)


def _even(sizes: Sequence[Dim], wanted: Sequence[Dim]) -> PoolSpec | None:
    """The pool whose windows these are, where on each axis all are of one length and as far apart."""
    kernel: list[int] = []
    strides: list[int] = []
    for size, count in zip(sizes, wanted, strict=True):
        if is_symbolic(size) or is_symbolic(count) or not int(count):
            return None
        starts = np.arange(int(count)) * int(size) // int(count)
        lengths = -(-(np.arange(int(count)) + 1) * int(size) // int(count)) - starts
        steps = set(np.diff(starts).tolist())
        if len(set(lengths.tolist())) > 1 or len(steps) > 1 or 0 in steps:
            return None
        kernel.append(int(lengths[0]))
        strides.append(steps.pop() if steps else int(size))
    return PoolSpec(DataFormat.NCHW, tuple(kernel), strides=tuple(strides))


@dataclass(frozen=True)
class _Windows:
    """The windows on one axis: for each, the places that it has, and as many more as the longest one has.

    ``places``: (windows, places), ``inside``: which of them are in the window, ``lengths``: how many.
    """

    places: OutletId
    inside: OutletId
    lengths: OutletId


def _windows(wire: NodeWiring, size: Dim, count: Dim) -> _Windows:
    """``count`` windows on an axis of ``size``, of which only a run may know how long they are."""
    zero, one = wire.const(0), wire.const(1)
    number = wire.through(wire_range, zero, wire.const(count), one)
    starts = wire.binary(Div(), wire.binary(Mul(), number, wire.const(size)), wire.const(count))
    above = wire.binary(Mul(), wire.binary(Add(), number, one), wire.const(size))
    ends = wire.binary(Div(), wire.binary(Add(), above, wire.const(count - 1)), wire.const(count))
    longest = size if is_symbolic(count) else size // int(count) + 2
    steps = wire.through(wire_range, zero, wire.const(longest), one)
    places = wire.binary(Add(), wire.unsqueeze(starts, [1]), steps)
    inside = wire.binary(Lt(), places, wire.unsqueeze(ends, [1]))
    return _Windows(wire.binary(Min(), places, wire.const(size - 1)), inside, wire.binary(Sub(), ends, starts))


def _gathered(wire: NodeWiring, x: OutletId, axis: int, windows: _Windows, rest: float) -> OutletId:
    """``x`` with the axis replaced by one of windows and one of what is in them, padded with ``rest``."""
    behind = range(2, wire.rank(x) - axis + 1)
    found = wire.op(Gather(axis), x, windows.places)
    return wire.select(wire.unsqueeze(windows.inside, behind), found, wire.scalar(rest, found))


def _mean(wire: NodeWiring, x: OutletId, axis: int, count: Dim) -> OutletId:
    windows = _windows(wire, wire.shape(x)[axis], count)
    total = wire.op(Reduce((axis + 1,), Reducer.SUM), _gathered(wire, x, axis, windows, 0))
    lengths = wire.unsqueeze(wire.cast(windows.lengths, wire.dtype(x)), range(1, wire.rank(x) - axis))
    return wire.binary(Div(), wire.squeeze(total, [axis + 1]), lengths)


def _largest(wire: NodeWiring, x: OutletId, first: int, wanted: Sequence[Dim]) -> Sequence[OutletId]:
    """The largest elements of windows on the axes from ``first`` on, and their places, the first of equals."""
    shape, spatial = wire.shape(x), len(wanted)
    rest = lowest(wire.dtype(x).numpy)
    every = [_windows(wire, size, count) for size, count in zip(shape[first:], wanted, strict=True)]
    for axis, windows in enumerate(every):
        x = _gathered(wire, x, first + 2 * axis, windows, rest)
    in_windows = [*range(0, 2 * spatial, 2), *range(1, 2 * spatial, 2)]
    x = wire.transpose(x, [*range(first), *(first + axis for axis in in_windows)])
    longest = product(wire.shape(x)[first + spatial :])
    x = wire.reshape(x, (*shape[:first], *wanted, longest))
    best = wire.op(Reduce((first + spatial,), Reducer.ARG_MAX_FIRST), x)
    places = wire.reshape(_places(wire, shape[first:], every), (*((1,) * first), *wanted, longest))
    places = wire.broadcast(places, (*shape[:first], *wanted, longest))
    return [wire.squeeze(wire.op(GatherElements(first + spatial), one, best), [first + spatial]) for one in (x, places)]


def _places(wire: NodeWiring, sizes: Sequence[Dim], every: Sequence[_Windows]) -> OutletId:
    """Where in the channel what is in the windows is from: (windows of each axis, places in each axis)."""
    spatial = len(every)
    found = wire.const(0)
    for axis, windows in enumerate(every):
        others = [one for one in range(2 * spatial) if one not in (axis, axis + spatial)]
        places = wire.unsqueeze(windows.places, others)
        found = wire.binary(Add(), wire.binary(Mul(), found, wire.const(sizes[axis])), places)
    return found
