"""Pools: the largest element or the mean of each window."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.dims import product
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Div, Rem
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, ExplicitOnnxPool, PoolSpec
from tract_core.ops.scatter import ScatterElements
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d")
def max_pool(call: Call, wire: NodeWiring) -> OutletId:
    """The largest element of each window"""
    return with_items(wire, call.input("self"), MaxPool(_pool(call)))[0]


@aten(ROWS, "aten.max_pool2d_with_indices", "aten.max_pool3d_with_indices")
def max_pool_with_indices(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The largest element of each window, and its place in the channel"""
    if not call.reads(1):
        return with_items(wire, call.input("self"), MaxPool(_pool(call)))
    return with_places(wire, call.input("self"), MaxPool(_pool(call), DatumType.I64))


@aten(ROWS, "aten.max_unpool2d", "aten.max_unpool3d")
def max_unpool(call: Call, wire: NodeWiring) -> OutletId:
    """Zeros, with each element at the place of its channel that it was taken from"""
    x, places, shape = call.input("self"), call.input("indices"), call.shape()
    spatial = int(call.name.partition("pool")[2][0])
    kept, taken = shape[: len(shape) - spatial], wire.shape(x)[len(shape) - spatial :]
    zeros = wire.broadcast(wire.scalar(0, x), (*kept, *shape[len(kept) :]))
    flat = [
        wire.reshape(one, (*kept, product(sizes)))
        for one, sizes in ((zeros, shape[len(kept) :]), (places, taken), (x, taken))
    ]
    return wire.reshape(wire.op(ScatterElements(len(kept)), *flat), shape)


@aten(ROWS, "aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def avg_pool(call: Call, wire: NodeWiring) -> OutletId:
    """The mean of each window, or its sum by a number"""
    x = call.input("self")
    if not wire.dtype(x).is_float():
        raise Unsupported(f"the means of {wire.dtype(x).short}", hint="make floating-point numbers of them")
    if not call.has("divisor_override"):
        return with_items(wire, x, SumPool(_pool(call), call.flag("count_include_pad")))[0]
    (total,) = with_items(wire, wire.cast(x, _wide(wire, x)), SumPool(_pool(call), normalize=False))
    return wire.cast(wire.op(Div(), total, wire.scalar(call.value("divisor_override"), total)), call.kind)


def _wide(wire: NodeWiring, x: OutletId) -> DatumType:
    """The type to add up in."""
    return DatumType.F64 if wire.dtype(x) is DatumType.F64 else DatumType.F32


def _pool(call: Call) -> PoolSpec:
    spatial = int(call.name.partition("pool")[2][0])
    kernel, pads = call.each("kernel_size", spatial), call.each("padding", spatial)
    strides = call.each("stride", spatial) if call.value("stride") else kernel
    dilations = call.each("dilation", spatial) if call.has("dilation") else ()
    padded = ExplicitOnnxPool(pads, pads, ceil_mode=call.flag("ceil_mode"))
    return PoolSpec(DataFormat.NCHW, kernel, padded, dilations, strides)


def with_items(wire: NodeWiring, x: OutletId, op: MaxPool | SumPool) -> tuple[OutletId, ...]:
    """The outputs of a pool, also of one item (channels, places) without an axis of items."""
    if wire.rank(x) == len(op.pool.kernel_shape) + 2:
        return wire.ops(op, x)
    return tuple(wire.squeeze(one, [0]) for one in wire.ops(op, wire.unsqueeze(x, [0])))


def with_places(wire: NodeWiring, x: OutletId, op: MaxPool) -> tuple[OutletId, OutletId]:
    """The largest elements and their places, which PyTorch counts in each channel, the core in the whole tensor."""
    largest, places = with_items(wire, x, op)
    count = wire.const(product(wire.shape(x)[wire.rank(x) - len(op.pool.kernel_shape) :]))
    return largest, wire.binary(Rem(), places, count)
