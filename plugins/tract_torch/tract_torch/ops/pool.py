"""Pools: the largest element or the mean of each window."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, ExplicitOnnxPool, PoolSpec
from tract_core.ops.reduce import wire_mean
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()


@aten(ROWS, "aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d")
def max_pool(call: Call, wire: NodeWiring) -> OutletId:
    """The largest element of each window"""
    return _with_items(call, wire, MaxPool(_pool(call)))[0]


@aten(ROWS, "aten.max_pool2d_with_indices", "aten.max_pool3d_with_indices")
def max_pool_with_indices(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The largest element of each window, and its place in the channel"""
    if len(call.node.users) == 1 and next(iter(call.node.users)).args[1] == 0:
        return _with_items(call, wire, MaxPool(_pool(call)))
    raise Unsupported("the places of the largest elements", hint="leave return_indices away")


@aten(ROWS, "aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def avg_pool(call: Call, wire: NodeWiring) -> OutletId:
    """The mean of each window"""
    if call.has("divisor_override"):
        raise Unsupported("a pool with a divisor of its own", hint="multiply the result of a plain one")
    return _with_items(call, wire, SumPool(_pool(call), bool(call.value("count_include_pad"))))[0]


@aten(ROWS, "aten.adaptive_avg_pool1d", "aten.adaptive_avg_pool2d", "aten._adaptive_avg_pool2d")
def adaptive_avg_pool(call: Call, wire: NodeWiring) -> OutletId:
    """The mean over all places, or over as many windows of one size as are asked for"""
    x, wanted = call.tensor("self"), call.dims("output_size")
    spatial = range(wire.rank(x) - len(wanted), wire.rank(x))
    if all(size == 1 for size in wanted):
        return wire.through(wire_mean, x, tuple(spatial))
    windows = [_window(wire.shape(x)[axis], size) for axis, size in zip(spatial, wanted, strict=True)]
    pool = PoolSpec(DataFormat.NCHW, tuple(windows), strides=tuple(windows))
    return _items(wire, x, len(wanted), SumPool(pool))[0]


def _window(size: object, wanted: object) -> int:
    if isinstance(size, int) and isinstance(wanted, int) and wanted and size % wanted == 0:
        return size // wanted
    raise Unsupported(f"an adaptive pool from {size} places to {wanted}, which is no even number of windows")


def _pool(call: Call) -> PoolSpec:
    spatial = int(call.name.partition("pool")[2][0])
    kernel, pads = tuple(call.each("kernel_size", spatial)), tuple(call.each("padding", spatial))
    strides = tuple(call.each("stride", spatial)) if call.value("stride") else kernel
    dilations = tuple(call.each("dilation", spatial)) if call.has("dilation") else ()
    padded = ExplicitOnnxPool(pads, pads, ceil_mode=bool(call.value("ceil_mode")))
    return PoolSpec(DataFormat.NCHW, kernel, padded, dilations, strides)


def _with_items(call: Call, wire: NodeWiring, op: MaxPool | SumPool) -> tuple[OutletId, ...]:
    return _items(wire, call.tensor("self"), len(op.pool.kernel_shape), op)


def _items(wire: NodeWiring, x: OutletId, spatial: int, op: MaxPool | SumPool) -> tuple[OutletId, ...]:
    """The pool, also of one item without an axis of items."""
    if wire.rank(x) == spatial + 2:
        return wire.ops(op, x)
    return tuple(wire.squeeze(one, [0]) for one in wire.ops(op, wire.unsqueeze(x, [0])))
