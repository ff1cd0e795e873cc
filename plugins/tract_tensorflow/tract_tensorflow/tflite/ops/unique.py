"""The different elements of a list."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.unique import Unique
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "UNIQUE")
@tflite_op(ROWS, "UNIQUE")
def unique(node: TfliteNode, wire: Wiring) -> Sequence[OutletId]:
    """In the order in which they first occur; and for each element, which of them it is"""
    x = wire.input(0)
    if wire.rank(x) != 1:
        raise FactError(f"UNIQUE wants a list, found {wire.fact(x)}")
    values, _, which, _ = wire.ops(Unique(None, False, wire.symbol("unique")), x)
    return values, wire.cast(which, node.output(1).kind or DatumType.I32)
