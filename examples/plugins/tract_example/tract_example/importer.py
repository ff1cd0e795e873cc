"""How ONNX files spell `Smooth`: ``com.example.Smooth(x)``, attributes ``decay`` (floats) and ``axis`` (default: 1)."""

from __future__ import annotations

import numpy as np
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

from tract_core.data import Constant
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_example.smooth import Smooth

ROWS = Rows()


@onnx_op(ROWS, "Smooth", domain="com.example")
def smooth(node: OnnxNode, wire: Wiring) -> OutletId:
    """One coefficient, or one per channel of the last axis."""
    x = wire.input(0)
    decay = np.array(node.numbers("decay"), np.float32)
    axis = node.axis("axis", wire.rank(x), 1)
    return wire.op(Smooth(axis, Constant(decay)), x)
