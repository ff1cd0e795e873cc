"""Elements in order: sorted, the largest, those in the middle."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.ops.cumsum import CumMax
from tract_core.ops.gather import GatherElements
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_topk
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import steps

ROWS = Rows()


@aten(ROWS, "aten.topk")
def topk(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The largest or smallest elements of an axis, in order, and their positions"""
    return _first(call, wire, call.dim("k"), largest=call.flag("largest"))


@aten(ROWS, "aten.sort.default", "aten.sort.stable")
def sort(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The elements of an axis in order, and their positions; equal ones stay in their order"""
    shape = wire.shape(call.input("self"))
    size = shape[call.integer("dim")] if shape else 1
    return _first(call, wire, size, largest=call.flag("descending"))


def _first(call: Call, wire: NodeWiring, k: Dim, *, largest: bool) -> tuple[OutletId, OutletId]:
    x = call.input("self")
    if not wire.rank(x):
        return x, wire.const(0)
    axis = call.axis("dim", wire.rank(x))
    return wire.through(wire_topk, x, wire.const(k), axis, largest=largest)


@aten(ROWS, "aten.kthvalue")
def kthvalue(call: Call, wire: NodeWiring) -> Sequence[OutletId | Wired]:
    """The k-th smallest element of an axis, from 1, and its position"""
    k, rank = call.dim("k"), wire.rank(call.input("self"))
    found = _first(call, wire, k, largest=False)
    if not rank:
        return found
    axis = call.axis("dim", rank)
    return _without(call, [Wired(wire, one).part(axis, k - 1, k) for one in found], axis)


def _without(call: Call, found: Sequence[Wired], axis: int) -> list[Wired]:
    """Without an axis that has one element, unless it is to stay."""
    return list(found) if call.flag("keepdim") else [one.squeeze([axis]) for one in found]


@aten(ROWS, "aten.median.dim", "aten.nanmedian.dim")
def median(call: Call, wire: NodeWiring) -> Sequence[OutletId | Wired]:
    """The element in the middle of an axis, the lower one of two, and its position"""
    x = call.tensor("self")
    if not x.rank:
        return x, wire.const(0)
    axis = call.axis("dim", x.rank)
    return _without(call, _median(x, axis, skips=call.name.startswith("aten.nan")), axis)


@aten(ROWS, "aten.median.default", "aten.nanmedian.default")
def median_of_all(call: Call, wire: NodeWiring) -> Wired:
    """The element in the middle of all, the lower one of two"""
    x = call.tensor("self")
    found, _ = _median(x.reshape((x.shape.volume,)), 0, skips=call.name.startswith("aten.nan"))
    return found.reshape(())


def _median(x: Wired, axis: int, *, skips: bool) -> tuple[Wired, Wired]:
    """The lower median of an axis, which keeps size 1, and its position; the first NaN, where one is not skipped."""
    size = x.shape[axis]
    ordered, places = _ordered(x, axis)
    if not x.dtype.is_float():
        middle = (size - 1) // 2
        return ordered.part(axis, middle, middle + 1), places.part(axis, middle, middle + 1)
    count = (~x.is_nan()).cast(DatumType.I64).sum([axis])
    middle = (count - 1).maximum(0) / 2
    if not skips:
        # Sorted, NaN comes last: where there is one, the first of them is the median.
        whole = count.like(0).broadcast(count.shape)
        size_of = whole + Wired(x.wire, x.wire.const(size))
        middle = count.eq(size_of).where(middle, count.minimum(size_of))
    return ordered.op(GatherElements(axis), middle), places.op(GatherElements(axis), middle)


def _ordered(x: Wired, axis: int) -> tuple[Wired, Wired]:
    """The elements of an axis, the smallest one first, and their positions."""
    count = x.wire.const(x.shape[axis])
    ordered, places = x.wire.through(wire_topk, x.outlet, count, axis, largest=False)
    return x.with_outlet(ordered), x.with_outlet(places)


@aten(ROWS, "aten.mode")
def mode(call: Call, wire: NodeWiring) -> Sequence[OutletId | Wired]:
    """The element that an axis has most often, the smallest of several, and where it is last

    In order, equal elements stand in a row; the one whose place in its row is the highest ends the longest row.
    """
    x = call.tensor("self")
    if not x.rank:
        return x, wire.const(0)
    axis = call.axis("dim", x.rank)
    size = x.shape[axis]
    ordered, places = _ordered(x, axis)
    before = ordered.part(axis, 0, size - 1)
    same = ordered.part(axis, 1, size).eq(before)
    number = Wired(wire, steps(wire, 1, size - 1)).unsqueeze([place for place in range(x.rank) if place != axis])
    row = number - same.where(0, number).op(CumMax(axis))
    front = row.like(0).broadcast([1 if place == axis else n for place, n in enumerate(x.shape)])
    last = front.concat([row], axis).argmax([axis])
    found = [one.op(GatherElements(axis), last) for one in (ordered, places)]
    return _without(call, found, axis)
