"""Elements in order: sorted, the largest, those in the middle."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Eq, Max, Min, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.cumsum import CumMax
from tract_core.ops.elementwise import IsNan, Not
from tract_core.ops.gather import GatherElements
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.slice import Slice
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
def kthvalue(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The k-th smallest element of an axis, from 1, and its position"""
    k = call.dim("k")
    found = _first(call, wire, k, largest=False)
    if not wire.rank(call.input("self")):
        return found
    axis = call.axis("dim", wire.rank(call.input("self")))
    return _without(call, wire, [wire.op(Slice(axis, k - 1, k), one) for one in found], axis)


def _without(call: Call, wire: NodeWiring, found: Sequence[OutletId], axis: int) -> list[OutletId]:
    """Without an axis that has one element, unless it is to stay."""
    return list(found) if call.flag("keepdim") else [wire.squeeze(one, [axis]) for one in found]


@aten(ROWS, "aten.median.dim", "aten.nanmedian.dim")
def median(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The element in the middle of an axis, the lower one of two, and its position"""
    x = call.input("self")
    if not wire.rank(x):
        return x, wire.const(0)
    axis = call.axis("dim", wire.rank(x))
    found = _median(wire, x, axis, skips=call.name.startswith("aten.nan"))
    return _without(call, wire, found, axis)


@aten(ROWS, "aten.median.default", "aten.nanmedian.default")
def median_of_all(call: Call, wire: NodeWiring) -> OutletId:
    """The element in the middle of all, the lower one of two"""
    x = wire.reshape(call.input("self"), (wire.shape(call.input("self")).volume,))
    return wire.number(_median(wire, x, 0, skips=call.name.startswith("aten.nan"))[0])


def _median(wire: NodeWiring, x: OutletId, axis: int, *, skips: bool) -> tuple[OutletId, OutletId]:
    """The lower median of an axis, which keeps size 1, and its position; the first NaN, where one is not skipped."""
    size = wire.shape(x)[axis]
    ordered, places = wire.through(wire_topk, x, wire.const(size), axis, largest=False)
    if not wire.dtype(x).is_float():
        middle = (size - 1) // 2
        return wire.op(Slice(axis, middle, middle + 1), ordered), wire.op(Slice(axis, middle, middle + 1), places)
    nans = wire.op(IsNan(), x)
    count = wire.op(Reduce((axis,), Reducer.SUM), wire.i64(wire.op(Not(), nans)))
    last = wire.binary(Max(), wire.binary(Sub(), count, wire.scalar(1, count)), wire.scalar(0, count))
    middle = wire.binary(Div(), last, wire.scalar(2, count))
    if not skips:
        # Sorted, NaN comes last: where there is one, the first of them is the median.
        whole = wire.broadcast(wire.scalar(0, count), wire.shape(count))
        size_of = wire.binary(Add(), whole, wire.const(size))
        middle = wire.select(wire.binary(Eq(), count, size_of), middle, wire.binary(Min(), count, size_of))
    return wire.op(GatherElements(axis), ordered, middle), wire.op(GatherElements(axis), places, middle)


@aten(ROWS, "aten.mode")
def mode(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The element that an axis has most often, the smallest of several, and where it is last

    In order, equal elements stand in a row; the one whose place in its row is the highest ends the longest row.
    """
    x = call.input("self")
    if not wire.rank(x):
        return x, wire.const(0)
    axis = call.axis("dim", wire.rank(x))
    size = wire.shape(x)[axis]
    ordered, places = wire.through(wire_topk, x, wire.const(size), axis, largest=False)
    before = wire.op(Slice(axis, 0, size - 1), ordered)
    same = wire.binary(Eq(), wire.op(Slice(axis, 1, size), ordered), before)
    number = wire.unsqueeze(steps(wire, 1, size - 1), [place for place in range(wire.rank(x)) if place != axis])
    begun = wire.op(CumMax(axis), wire.select(same, wire.scalar(0, number), number))
    row = wire.binary(Sub(), number, begun)
    front = wire.broadcast(wire.scalar(0, row), [1 if place == axis else n for place, n in enumerate(wire.shape(x))])
    rows = wire.op(TypedConcat(axis), front, row)
    last = wire.op(Reduce((axis,), Reducer.ARG_MAX_FIRST), rows)
    found = [wire.op(GatherElements(axis), one, last) for one in (ordered, places)]
    return _without(call, wire, found, axis)
