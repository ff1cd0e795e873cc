"""How often elements occur."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.ops.fill import DynFill
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.bincount")
def bincount(call: Call, wire: NodeWiring) -> Wired:
    """How often each integer from 0 on occurs, or the sum of the weights of where it occurs"""
    x = call.tensor("self").cast(DatumType.I64)
    least = x.concat([x.operand(np.array([call.integer("minlength") - 1]))], 0)
    count = least.max([0]) + 1
    none = count.op(DynFill(Constant(np.zeros((), call.kind.numpy)), call.shape()))
    ones = Wired(wire, wire.const(np.ones(1, call.kind.numpy)))
    weights = call.tensor("weights").cast(call.kind) if call.has("weights") else ones
    return none.op(ScatterElements(0, "add"), x, weights.broadcast(x.shape))


@aten(ROWS, "aten.histc")
def histc(call: Call, wire: NodeWiring) -> Wired:
    """How many elements there are in each of several ranges of one width; without bounds, from the least to the largest

    The last range has its upper bound, too. What is outside, or NaN, is not counted.
    """
    x = call.tensor("self")
    x = x.reshape((x.shape.volume,))
    bins, (low, high) = call.integer("bins"), _bounds(call, x)
    inside = (x >= low) & (x <= high)
    place = (x - low) * bins / (high - low)
    place = inside.where(place, 0).cast(DatumType.I64).minimum(bins - 1)
    none = Wired(wire, wire.const(np.zeros(bins, call.kind.numpy)))
    return none.op(ScatterElements(0, "add"), place, inside.cast(call.kind))


def _bounds(call: Call, x: Wired) -> tuple[Wired, Wired]:
    """From where to where elements are counted; one number alone has 1 on both sides."""
    low, high = call.number("min"), call.number("max")
    ends = x.like(low), x.like(high)
    if low != high:
        return ends
    if low == 0:
        ends = x.min([0]), x.max([0])
    one, none = x.like(1), x.like(0)
    more = ends[0].eq(ends[1]).where(one, none)
    return ends[0] - more, ends[1] + more
