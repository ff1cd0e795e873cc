"""How often elements occur."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, And, Div, Eq, Ge, Le, Min, Mul, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.fill import DynFill
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scatter import ScatterElements
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.bincount")
def bincount(call: Call, wire: NodeWiring) -> OutletId:
    """How often each integer from 0 on occurs, or the sum of the weights of where it occurs"""
    x = wire.i64(call.input("self"))
    least = wire.op(TypedConcat(0), x, wire.const([call.integer("minlength") - 1]))
    count = wire.binary(Add(), wire.op(Reduce((0,), Reducer.MAX), least), wire.const([1]))
    none = wire.op(DynFill(Constant(np.zeros((), call.kind.numpy)), call.shape()), count)
    ones = wire.const(np.ones(1, call.kind.numpy))
    weights = wire.cast(call.input("weights"), call.kind) if call.has("weights") else ones
    return wire.op(ScatterElements(0, "add"), none, x, wire.broadcast(weights, wire.shape(x)))


@aten(ROWS, "aten.histc")
def histc(call: Call, wire: NodeWiring) -> OutletId:
    """How many elements there are in each of several ranges of one width; without bounds, from the least to the largest

    The last range has its upper bound, too. What is outside, or NaN, is not counted.
    """
    x = wire.reshape(call.input("self"), (wire.shape(call.input("self")).volume,))
    bins, (low, high) = call.integer("bins"), _bounds(call, wire, x)
    inside = wire.binary(And(), wire.binary(Ge(), x, low), wire.binary(Le(), x, high))
    part = wire.binary(Mul(), wire.binary(Sub(), x, low), wire.scalar(bins, x))
    place = wire.binary(Div(), part, wire.binary(Sub(), high, low))
    place = wire.i64(wire.select(inside, place, wire.scalar(0, x)))
    place = wire.binary(Min(), place, wire.const([bins - 1]))
    none = wire.const(np.zeros(bins, call.kind.numpy))
    return wire.op(ScatterElements(0, "add"), none, place, wire.cast(inside, call.kind))


def _bounds(call: Call, wire: NodeWiring, x: OutletId) -> tuple[OutletId, OutletId]:
    """From where to where elements are counted; one number alone has 1 on both sides."""
    low, high = (call.number(name) for name in ("min", "max"))
    if low != high:
        return wire.scalar(low, x), wire.scalar(high, x)
    ends = [wire.scalar(low, x), wire.scalar(high, x)]
    if low == 0:
        ends = [wire.op(Reduce((0,), reducer), x) for reducer in (Reducer.MIN, Reducer.MAX)]
    one, none = wire.scalar(1, x), wire.scalar(0, x)
    more = wire.select(wire.binary(Eq(), *ends), one, none)
    return wire.binary(Sub(), ends[0], more), wire.binary(Add(), ends[1], more)
