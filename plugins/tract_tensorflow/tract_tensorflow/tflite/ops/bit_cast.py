"""The bytes of elements as those of another type."""

from __future__ import annotations

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring
from tract_tensorflow.tflite_only.bit_cast import BytesAs

ROWS = Rows()


@quantized_op(ROWS, "BITCAST")
@tflite_op(ROWS, "BITCAST")
def bit_cast(node: TfliteNode, wire: Wiring) -> OutletId:
    """Narrower elements get an axis of their own, wider ones take that of theirs"""
    kind = node.output().kind
    if kind is None:
        raise Unsupported(f"BITCAST to {node.output().type_name}")
    return wire.op(BytesAs(kind), wire.input(0))
