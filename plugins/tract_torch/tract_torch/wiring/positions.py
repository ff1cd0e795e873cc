"""Positions along axes: the places that a slice, a diagonal, a window or a mask names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, broadcast, dim_max, dim_min
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Mul
from tract_core.ops.concat import TypedConcat
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.non_zero import NonZero
from tract_core.ops.slice import Slice
from tract_core.ops.wiring_dyn import wire_range


def steps(wire: NodeWiring, start: Dim, count: Dim, step: Dim = 1) -> OutletId:
    """``count`` positions from ``start`` on, each ``step`` behind the one before: i64, one axis."""
    if isinstance(start, int) and isinstance(count, int) and isinstance(step, int):
        return wire.const(start + step * np.arange(count))
    numbers = wire.through(wire_range, wire.const(0), wire.const(count), wire.const(1))
    scaled = numbers if step == 1 else wire.binary(Mul(), numbers, wire.const(step))
    return scaled if start == 0 else wire.binary(Add(), scaled, wire.const(start))


def columns(wire: NodeWiring, found: Sequence[OutletId]) -> OutletId:
    """Positions along several axes, tensors that stretch to one shape, as coordinates in a new last axis."""
    shape = common_shape(wire, found)
    each = [wire.unsqueeze(wire.broadcast(one, shape), [len(shape)]) for one in wire.ranks(*found)]
    return each[0] if len(each) == 1 else wire.op(TypedConcat(len(shape)), *each)


def common_shape(wire: NodeWiring, found: Sequence[OutletId]) -> list[Dim]:
    """The shape that tensors have together, where axes of size 1 stretch and missing ones stand in front."""
    rank = max(wire.rank(one) for one in found)
    common: list[Dim] = [1] * rank
    for one in found:
        shape = [*[1] * (rank - wire.rank(one)), *wire.shape(one)]
        common = [broadcast(left, right) for left, right in zip(common, shape, strict=True)]
    return common


def non_zero(wire: NodeWiring, x: OutletId, count: Dim) -> list[OutletId]:
    """For each axis of ``x``, the positions of the ``count`` elements that are not zero: i64."""
    places = wire.op(NonZero(count), x)
    return [wire.squeeze(wire.op(Slice(0, axis, axis + 1), places), [0]) for axis in range(wire.rank(x))]


def by_axis(wire: NodeWiring, x: OutletId, given: Sequence[OutletId | None], count: Dim) -> dict[int, OutletId]:
    """What ``x[given]`` names: for axes of ``x``, the positions along them. ``count``: how many a mask holds."""
    found: dict[int, OutletId] = {}
    axis = 0
    for one in given:
        if one is None:
            axis += 1
        elif wire.dtype(one) is DatumType.BOOL:
            wire.require_shape("mask", one, wire.shape(x)[axis : axis + wire.rank(one)])
            for place, positions in enumerate(non_zero(wire, one, count)):
                found[axis + place] = positions
            axis += wire.rank(one)
        else:
            found[axis] = wire.i64(one)
            axis += 1
    return found


def in_one_place(axes: Sequence[int]) -> int:
    """Where what several axes are replaced by stands: at the first, where they are neighbours, else in front."""
    return axes[0] if list(axes) == list(range(axes[0], axes[-1] + 1)) else 0


def diagonal(wire: NodeWiring, rows: Dim, width: Dim, offset: int) -> OutletId:
    """The coordinates of a diagonal of a matrix of ``rows`` rows of ``width`` elements: i64 of [its length, 2]."""
    length = dim_max(0, dim_min(rows - max(-offset, 0), width - max(offset, 0)))
    return columns(wire, [steps(wire, start, length) for start in (max(-offset, 0), max(offset, 0))])
