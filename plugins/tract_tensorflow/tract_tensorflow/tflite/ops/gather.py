"""Elements taken from places that a tensor names."""

from __future__ import annotations

from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.gather import Gather, GatherNd
from tract_core.ops.quantize import DequantizeLinear
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.weights import block_scales
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "GATHER")
@tflite_op(ROWS, "GATHER")
def gather(node: TfliteNode, wire: Wiring) -> OutletId:
    """The slices at places on an axis; the first ``batch_dims`` axes are common to both inputs"""
    x, places = wire.input(0), wire.input(1)
    axis, batch = node.axis("axis", wire.rank(x), 0), node.integer("batch_dims", 0)
    batch = batch + wire.rank(places) if batch < 0 else batch
    if batch == 0:
        return wire.op(Gather(axis), x, places)
    if not 0 <= batch <= min(axis, wire.rank(places)):
        raise CorruptModel(f"GATHER along axis {axis} has {batch} axes of batches")
    return _batched(wire, x, places, axis=axis, batch=batch)


def _batched(wire: Wiring, x: OutletId, places: OutletId, *, axis: int, batch: int) -> OutletId:
    """The axis is moved behind those of the batches; what the places bring in is moved to where it was."""
    rank, brought = wire.rank(x), wire.rank(places) - batch
    others = [one for one in range(batch, rank) if one != axis]
    moved = wire.transpose(x, (*range(batch), axis, *others))
    found = wire.op(GatherNd(batch), moved, wire.unsqueeze(places, [wire.rank(places)]))
    first = batch + brought
    between = axis - batch
    order = (
        *range(batch),
        *range(first, first + between),
        *range(batch, first),
        *range(first + between, wire.rank(found)),
    )
    return wire.transpose(found, order)


@quantized_op(ROWS, "GATHER_ND")
@tflite_op(ROWS, "GATHER_ND")
def gather_nd(node: TfliteNode, wire: Wiring) -> OutletId:
    """The slices at the coordinates in the last axis of the second input"""
    return wire.op(GatherNd(0), wire.input(0), wire.input(1))


@quantized_op(ROWS, "EMBEDDING_LOOKUP")
@tflite_op(ROWS, "EMBEDDING_LOOKUP")
def embedding_lookup(node: TfliteNode, wire: Wiring) -> Wired:
    """The rows of a table; those of a table in bytes as the numbers that they stand for, where floats are wanted"""
    places, table = wire.tensor(0), wire.tensor(1)
    rows, kind = table.op(Gather(0), places), node.output().kind
    if kind is None or not kind.is_float() or table.dtype.is_float():
        return rows
    blocks = block_scales(wire, 1)
    if blocks is not None:
        scales, zeros = (table.operand(one).op(Gather(0), places) for one in (blocks.scales, blocks.zeros))
        return rows.op(DequantizeLinear(kind, rows.rank - 1, blocks.size), scales, zeros)
    scales = table.operand(node.quantization(1).scales)
    factors = scales.reshape(()) if scales.shape[0] == 1 else scales.op(Gather(0), places)
    if factors.rank:
        factors = factors.unsqueeze(range(places.rank, rows.rank))
    return rows.cast(kind) * factors
