"""Elements written to places that a tensor names."""

from __future__ import annotations

from typing import Final

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.elementwise import Neg
from tract_core.ops.scatter import Reduction, ScatterNd
from tract_core.ops.slice import wire_dyn_slice
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_fill
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.ops.pad import zero_of
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()

_REDUCTIONS: Final[dict[str, Reduction]] = {
    "TensorScatterUpdate": "none",
    "TensorScatterAdd": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
}


@tf_op(ROWS, *_REDUCTIONS)
def tensor_scatter(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X with slices of the third input written to the coordinates in the last axis of the second"""
    return wire.op(ScatterNd(_REDUCTIONS[node.op_type]), wire.input(0), wire.input(1), wire.input(2))


@tf_op(ROWS, "TensorScatterSub")
def tensor_scatter_sub(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X, less slices of the third input at the coordinates in the last axis of the second"""
    return wire.op(ScatterNd("add"), wire.input(0), wire.input(1), wire.op(Neg(), wire.input(2)))


@tf_op(ROWS, "UnsortedSegmentSum")
def segment_sum(node: GraphNode, wire: GraphWiring) -> Wired:
    """The sums of the slices of each segment; what belongs to a segment below 0 belongs to none"""
    x, segment, count = wire.tensor(0), wire.tensor(1), wire.tensor(2).reshape(()).cast(DatumType.I64)
    segment = segment.cast(DatumType.I64)
    segment = (segment < 0).where(count, segment)
    sizes = (count + 1).unsqueeze([0]).concat([Wired(wire, wire.const(tuple(x.shape[segment.rank :])))], 0)
    sums = Wired(wire, wire.through(wire_fill, sizes.outlet, zero_of(x.dtype))).op(
        ScatterNd("add"), segment[..., None], x
    )
    return sums.through(wire_dyn_slice, 0, start=wire.const(0), end=count.outlet)


@tf_op(ROWS, "ScatterNd")
def scatter_nd(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The sums of slices of the second input at the coordinates in the first, in the shape that the third holds"""
    updates = wire.input(1)
    zeros = wire.through(wire_fill, wire.sizes(wire.input(2)), zero_of(wire.dtype(updates)))
    return wire.op(ScatterNd("add"), zeros, wire.input(0), updates)
