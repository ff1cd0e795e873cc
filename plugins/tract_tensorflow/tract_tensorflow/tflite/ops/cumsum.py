"""Running sums."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.cumsum import CumSum
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "CUMSUM")
def cumsum(node: TfliteNode, wire: Wiring) -> OutletId:
    """Along an axis, the sum of the elements up to each one"""
    x = wire.input(0)
    named = wire.known_int(wire.input(1), "the axis of CUMSUM")
    return wire.op(CumSum(wire.axis(named, wire.rank(x)), node.flag("exclusive"), node.flag("reverse")), x)
