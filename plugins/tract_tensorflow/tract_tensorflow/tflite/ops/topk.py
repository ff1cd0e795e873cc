"""The largest elements of an axis."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_topk
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "TOPK_V2")
@tflite_op(ROWS, "TOPK_V2")
def topk(node: TfliteNode, wire: Wiring) -> Sequence[OutletId]:
    """Along the last axis, as many as an input says, and where they are"""
    x, count = wire.input(0), wire.i64(wire.number(wire.input(1)))
    values, places = wire.through(wire_topk, x, count, wire.axis(-1, wire.rank(x)), largest=True)
    return values, wire.cast(places, node.output(1).kind or DatumType.I32)
