"""Shapes and the order of axes."""

from __future__ import annotations

from tract_core.dims import same_dim
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()


@aten(ROWS, "aten.view.default", "aten.reshape", "aten._unsafe_view", "aten.flatten", "aten.unflatten")
def reshape(call: Call, wire: NodeWiring) -> OutletId:
    """The same elements in another shape, which PyTorch tells"""
    return wire.reshape(call.tensor("self"), call.shape())


@aten(ROWS, "aten.permute")
def permute(call: Call, wire: NodeWiring) -> OutletId:
    """The axes in another order"""
    x = call.tensor("self")
    return wire.transpose(x, wire.axes(call.ints("dims"), wire.rank(x)))


@aten(ROWS, "aten.transpose.int")
def transpose(call: Call, wire: NodeWiring) -> OutletId:
    """Two axes change places"""
    x = call.tensor("self")
    if not wire.rank(x):
        return x
    a, b = (wire.axis(int(call.value(name)), wire.rank(x)) for name in ("dim0", "dim1"))
    order = list(range(wire.rank(x)))
    order[a], order[b] = b, a
    return wire.transpose(x, order)


@aten(ROWS, "aten.t")
def t(call: Call, wire: NodeWiring) -> OutletId:
    """The transposed matrix; vectors stay"""
    x = call.tensor("self")
    return wire.transpose(x, list(reversed(range(wire.rank(x)))))


@aten(ROWS, "aten.unsqueeze")
def unsqueeze(call: Call, wire: NodeWiring) -> OutletId:
    """A new axis of size 1"""
    x = call.tensor("self")
    return wire.unsqueeze(x, [wire.axis(int(call.value("dim")), wire.rank(x) + 1)])


@aten(ROWS, "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims")
def squeeze(call: Call, wire: NodeWiring) -> OutletId:
    """Without axes of size 1: those that are named, or all"""
    x = call.tensor("self")
    named = call.ints("dim") if call.has("dim") else range(wire.rank(x))
    axes = wire.axes(list(named), wire.rank(x)) if wire.rank(x) else []
    return wire.squeeze(x, [axis for axis in axes if same_dim(wire.shape(x)[axis], 1)])
