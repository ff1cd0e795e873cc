"""Positions as vectors that hold one value at a place, and another one elsewhere."""

from __future__ import annotations

from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "ONE_HOT")
@tflite_op(ROWS, "ONE_HOT")
def one_hot(node: TfliteNode, wire: Wiring) -> Wired:
    """A new axis of a given size: the third input at the place that the first names, elsewhere the fourth"""
    places = Wired(wire, wire.i64(wire.input(0)))
    depth, on, off = wire.number(wire.i64(wire.input(1))), wire.number(wire.input(2)), wire.number(wire.input(3))
    axis = node.axis("axis", places.rank + 1, -1)
    numbers = Wired(wire, wire.through(wire_range, wire.const(0), depth, wire.const(1)))
    others = [other for other in range(places.rank + 1) if other != axis]
    found = places.unsqueeze([axis]).eq(numbers.unsqueeze(others))
    return found.where(Wired(wire, on), Wired(wire, off))
