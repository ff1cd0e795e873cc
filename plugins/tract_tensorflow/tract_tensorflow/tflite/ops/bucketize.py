"""Numbers as the intervals that they lie in."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "BUCKETIZE")
def bucketize(node: TfliteNode, wire: Wiring) -> Wired:
    """How many boundaries are at most the number; all of them for what is no number"""
    x, boundaries = wire.tensor(0), np.array(node.numbers("boundaries", ()), np.float32)
    x = x if x.dtype.is_float() else x.cast(DatumType.F32)
    limits = Wired(wire, wire.const(boundaries.astype(x.dtype.numpy)))
    is_below = x.unsqueeze([x.rank]) < limits.unsqueeze(range(x.rank))
    return (~is_below).cast(DatumType.I32).sum([x.rank]).squeeze([x.rank])
