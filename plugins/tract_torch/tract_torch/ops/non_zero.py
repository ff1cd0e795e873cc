"""Where elements are not zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.non_zero import NonZero
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import non_zero

ROWS = Rows()


@aten(ROWS, "aten.nonzero")
def coordinates(call: Call, wire: NodeWiring) -> OutletId:
    """The coordinates of all elements that are not zero, one row each"""
    return wire.transpose(wire.op(NonZero(call.shape()[0]), call.input("self")), (1, 0))


@aten(ROWS, "aten.nonzero_numpy")
def positions(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """For each axis, the positions of all elements that are not zero"""
    x = call.input("self")
    (count,) = call.shape()
    return non_zero(wire, x if wire.rank(x) else wire.unsqueeze(x, [0]), count)


@aten(ROWS, "aten.nonzero_static")
def some_coordinates(call: Call, wire: NodeWiring) -> OutletId:
    """The coordinates of so many elements that are not zero, one row each; where there are fewer, a number instead"""
    x, size = call.input("self"), call.dim("size")
    found = wire.transpose(wire.op(NonZero(wire.symbol("found")), x), (1, 0))
    filler = wire.const(np.full((1, 1), call.value("fill_value"), np.int64))
    filler = wire.broadcast(filler, (size, wire.rank(x)))
    return wire.op(Slice(0, 0, size), wire.op(TypedConcat(0), found, filler))
