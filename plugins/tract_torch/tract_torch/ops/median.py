"""Elements by their place in the order of an axis: medians, the k-th one, and the most frequent one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Div, Eq, Lt, Max, Sub
from tract_core.ops.elementwise import IsNan, Not
from tract_core.ops.gather import GatherElements
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.topk import Topk
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()


@aten(ROWS, "aten.median", "aten.nanmedian")
def median(call: Call, wire: NodeWiring) -> OutletId | Sequence[OutletId]:
    """The middle one of the elements, the lower one of two, and, along an axis, where it is

    What is not a number is the median where it is there; ``nanmedian`` leaves it out.
    """
    x, ignores = call.tensor("self"), "nan" in call.name
    if call.has("dim"):
        return _picked(call, wire, lambda values, axis: _middle(wire, values, axis, ignores=ignores))
    x = wire.reshape(x, (wire.shape(x).volume,))
    values, _ = _ordered(wire, x, 0)
    return wire.squeeze(wire.op(GatherElements(0), values, _middle(wire, values, 0, ignores=ignores)), [0])


def _middle(wire: NodeWiring, values: OutletId, axis: int, *, ignores: bool) -> OutletId:
    """Where the median is among elements in order, of which those that are no numbers come last."""
    there = wire.op(Not(), wire.op(IsNan(), values)) if wire.dtype(values).is_float() else _all(wire, values)
    count = wire.op(Reduce((axis,), Reducer.SUM), wire.i64(there))
    zero, one, two = (wire.scalar(number, count) for number in (0, 1, 2))
    place = wire.op(Max(), wire.op(Div(), wire.op(Sub(), count, one), two), zero)
    if ignores:
        return place
    size = wire.reshape(wire.const(wire.shape(values)[axis]), (1,) * wire.rank(values))
    return wire.select(wire.op(Lt(), count, size), count, place)


def _all(wire: NodeWiring, x: OutletId) -> OutletId:
    return wire.broadcast(wire.const(np.ones((1,) * wire.rank(x), bool)), wire.shape(x))


@aten(ROWS, "aten.kthvalue")
def kth_value(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The k-th one of the elements in order along an axis, and where it is"""
    place = int(call.value("k")) - 1

    def always(values: OutletId, axis: int) -> OutletId:
        shape = [1 if at == axis else size for at, size in enumerate(wire.shape(values))]
        return wire.broadcast(wire.const(np.full((1,) * wire.rank(values), place)), shape)

    return _picked(call, wire, always)


@aten(ROWS, "aten.mode")
def mode(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The most frequent one of the elements along an axis, the lowest of several; its place is not told"""

    def most(values: OutletId, axis: int) -> OutletId:
        rows, columns = wire.unsqueeze(values, [axis]), wire.unsqueeze(values, [axis + 1])
        count = wire.op(Reduce((axis,), Reducer.SUM), wire.i64(wire.op(Eq(), rows, columns)))
        return wire.op(Reduce((axis,), Reducer.ARG_MAX_FIRST), wire.squeeze(count, [axis]))

    return _picked(call, wire, most)[:1]


def _picked(call: Call, wire: NodeWiring, choose: Callable[[OutletId, int], OutletId]) -> Sequence[OutletId]:
    """One element along the axis ``dim``, and where it is.

    ``choose(values, axis)``: its place among the values in order, where the axis keeps size 1.
    """
    x = call.tensor("self")
    if not wire.rank(x):
        return x, wire.const(np.array(0))
    axis = wire.axis(int(call.value("dim")), wire.rank(x))
    values, places = _ordered(wire, x, axis)
    place = choose(values, axis)
    found = [wire.op(GatherElements(axis), outlet, place) for outlet in (values, places)]
    return found if call.value("keepdim") else [wire.squeeze(outlet, [axis]) for outlet in found]


def _ordered(wire: NodeWiring, x: OutletId, axis: int) -> tuple[OutletId, ...]:
    """The elements in order along an axis, the smallest one first, and where they were."""
    kind, size = wire.dtype(x), wire.shape(x)[axis]
    found = wire.ops(
        Topk(axis, largest=False, k=size), wire.cast(x, DatumType.U8) if kind.is_bool() else x, wire.const(size)
    )
    return wire.cast(found[0], kind), found[1]
