"""Parts of tensors, and tensors with other parts."""

from __future__ import annotations

from tract_core.dims import Dim, dim_max, dim_min, same_dim
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scatter import ScatterNd
from tract_core.ops.slice import Slice, wire_slice
from tract_core.plugins.tables import Rows
from tract_torch.ops.item import wire_symbol
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import steps

ROWS = Rows()

_ENDLESS = 2**62
"""What stands for the end of an axis, and what lies behind it."""


@aten(ROWS, "aten.slice.Tensor", "aten.slice_copy.Tensor")
def cut(call: Call, wire: NodeWiring) -> OutletId:
    """``x[start:end:step]`` on one axis

    Between numbers that only a run knows, the result has a size that PyTorch has a new symbol for.
    """
    x = call.input("self")
    axis = call.axis("dim", wire.rank(x))
    if call.value("step") == 1 and same_dim(call.shape()[axis], wire.shape(x)[axis]):
        return x  # also where it ends at a size of another axis, behind all that there is
    start, end = (call.dim(name) if call.has(name) else None for name in ("start", "end"))
    if isinstance(end, int) and end >= _ENDLESS:
        end = None
    start = None if start == 0 else start
    found = wire.through(wire_slice, x, axis, start=start, end=end, step=call.integer("step"))
    if not call.node.meta.get("unbacked_bindings"):
        return found
    wire_symbol(wire, call.shape()[axis], wire.const(wire.shape(found)[axis]))
    return wire.reshape(found, call.shape())


@aten(ROWS, "aten.select.int", "aten.select_copy.int")
def select(call: Call, wire: NodeWiring) -> OutletId:
    """One position of an axis, without the axis"""
    x = call.input("self")
    axis = call.axis("dim", wire.rank(x))
    index: Dim = call.dim("index")
    if isinstance(index, int) and index < 0:
        index = wire.shape(x)[axis] + index
    return wire.squeeze(wire.op(Slice(axis, index, index + 1), x), [axis])


@aten(ROWS, "aten.flip")
def flip(call: Call, wire: NodeWiring) -> OutletId:
    """Axes the other way round"""
    x = call.input("self")
    for axis in call.axes("dims", wire.rank(x)):
        x = wire.through(wire_slice, x, axis, start=None, end=None, step=-1)
    return x


@aten(ROWS, "aten.slice_scatter")
def slice_scatter(call: Call, wire: NodeWiring) -> OutletId:
    """A tensor with another ``x[start:end:step]`` on one axis"""
    x, source = call.input("self"), wire.cast(call.input("src"), call.kind)
    axis, step = call.axis("dim", wire.rank(x)), call.dim("step")
    size, count = wire.shape(x)[axis], wire.shape(source)[axis]
    if same_dim(count, 0):
        return x
    start = _from_front(call.dim("start", 0), size)
    start = wire.model.known.simplify(dim_max(0, dim_min(start, size)))
    if step == 1:
        return _replaced(wire, x, source, axis, start)
    order = [axis, *(other for other in range(wire.rank(x)) if other != axis)]
    places = wire.unsqueeze(steps(wire, start, count, step), [1])
    written = wire.op(ScatterNd(), wire.transpose(x, order), places, wire.transpose(source, order))
    return wire.transpose(written, [order.index(place) for place in range(len(order))])


def _from_front(start: Dim, size: Dim) -> Dim:
    """A place on an axis; numbers below 0 count from the end."""
    return size + start if isinstance(start, int) and start < 0 else start


def _replaced(wire: NodeWiring, x: OutletId, part: OutletId, axis: int, start: Dim) -> OutletId:
    """A tensor with another part, from a place on an axis on."""
    size, end = wire.shape(x)[axis], start + wire.shape(part)[axis]
    pieces = [part]
    if not same_dim(start, 0):
        pieces.insert(0, wire.op(Slice(axis, 0, start), x))
    if not same_dim(end, size):
        pieces.append(wire.op(Slice(axis, end, size), x))
    return part if len(pieces) == 1 else wire.op(TypedConcat(axis), *pieces)


@aten(ROWS, "aten.select_scatter")
def select_scatter(call: Call, wire: NodeWiring) -> OutletId:
    """A tensor with another position of an axis"""
    x = call.input("self")
    axis = call.axis("dim", wire.rank(x))
    part = wire.unsqueeze(wire.cast(call.input("src"), call.kind), [axis])
    return _replaced(wire, x, part, axis, _from_front(call.dim("index"), wire.shape(x)[axis]))
