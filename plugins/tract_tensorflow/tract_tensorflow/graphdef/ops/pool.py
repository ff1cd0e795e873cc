"""Pools: the largest element, or the mean, of each window."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.dims import product
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Rem
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, PoolSpec
from tract_core.ops.wired import Results, Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.ops.spatial import data_format, padding, spatial
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


def _pool(node: GraphNode, sizes: Sequence[int], strides: Sequence[int]) -> PoolSpec:
    layout = data_format(node, "NDHWC" if node.op_type.endswith("3D") else "NHWC")
    kernel, steps = spatial(node, "ksize", layout, sizes), spatial(node, "strides", layout, strides)
    return PoolSpec(layout, kernel, padding(node, layout), strides=steps)


def _of_attributes(node: GraphNode) -> PoolSpec:
    return _pool(node, node.integers("ksize"), node.integers("strides"))


@tf_op(ROWS, "MaxPool", "MaxPool3D")
def max_pool(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The largest element of each window"""
    return wire.op(MaxPool(_of_attributes(node)), wire.input(0))


@tf_op(ROWS, "MaxPoolV2")
def max_pool_of_inputs(node: GraphNode, wire: GraphWiring) -> OutletId:
    """As MaxPool, with the window as inputs"""
    sizes, strides = wire.known_ints(wire.input(1), "sizes of MaxPoolV2"), wire.known_ints(wire.input(2), "strides")
    return wire.op(MaxPool(_pool(node, sizes, strides)), wire.input(0))


@tf_op(ROWS, "MaxPoolWithArgmax")
def max_pool_with_argmax(node: GraphNode, wire: GraphWiring) -> Results:
    """The largest element of each window, and its place in the image, or in the whole batch"""
    x, pool = wire.input(0), _of_attributes(node)
    if not node.wants_output(1):
        return (wire.op(MaxPool(pool), x),)
    if pool.data_format is not DataFormat.NHWC:
        raise Unsupported("places of MaxPoolWithArgmax with the channels first")
    values, places = wire.ops(MaxPool(pool, DatumType.I64), x)
    found = Wired(wire, places)
    if not node.flag("include_batch_in_index"):
        size = Wired(wire, wire.const(product(wire.shape(x)[1:]))).unsqueeze(range(found.rank))
        found = found.op(Rem(), size)
    return values, found.cast(node.element_type("Targmax", DatumType.I64))


@tf_op(ROWS, "AvgPool", "AvgPool3D")
def average_pool(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The mean of each window, without the padding"""
    return wire.op(SumPool(_of_attributes(node)), wire.input(0))
