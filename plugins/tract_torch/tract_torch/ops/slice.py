"""Parts of tensors."""

from __future__ import annotations

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.slice import Slice, wire_slice
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()

_ENDLESS = 2**62
"""What stands for the end of an axis, and what lies behind it."""


@aten(ROWS, "aten.slice.Tensor")
def cut(call: Call, wire: NodeWiring) -> OutletId:
    """``x[start:end:step]`` on one axis"""
    x = call.tensor("self")
    axis = wire.axis(int(call.value("dim")), wire.rank(x))
    start, end = (call.dim(name) if call.has(name) else None for name in ("start", "end"))
    if isinstance(end, int) and end >= _ENDLESS:
        end = None
    return wire.through(wire_slice, x, axis, start=start or None, end=end, step=int(call.value("step")))


@aten(ROWS, "aten.select.int")
def select(call: Call, wire: NodeWiring) -> OutletId:
    """One position of an axis, without the axis"""
    x = call.tensor("self")
    axis = wire.axis(int(call.value("dim")), wire.rank(x))
    index: Dim = call.dim("index")
    if isinstance(index, int) and index < 0:
        index = wire.shape(x)[axis] + index
    return wire.squeeze(wire.op(Slice(axis, index, index + 1), x), [axis])


@aten(ROWS, "aten.flip")
def flip(call: Call, wire: NodeWiring) -> OutletId:
    """Axes the other way round"""
    x = call.tensor("self")
    for axis in wire.axes(call.ints("dims"), wire.rank(x)):
        x = wire.through(wire_slice, x, axis, start=None, end=None, step=-1)
    return x
