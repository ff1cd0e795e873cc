"""Images enlarged by factors along their two axes: the oldest form of what is Resize today."""

from __future__ import annotations

import numpy as np

from tract_core.ops.wired import Results
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.resize import upsample_9
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Upsample")
def upsample_1(node: OnnxNode, wire: Wiring) -> Results:
    """The factors are attributes, one for the height and one for the width"""
    factors = np.array([1, 1, node.number("height_scale"), node.number("width_scale")], np.float32)
    return upsample_9(node, Wiring(wire.model, wire.name, [wire.input(0), wire.const(factors)], wire.outer))
