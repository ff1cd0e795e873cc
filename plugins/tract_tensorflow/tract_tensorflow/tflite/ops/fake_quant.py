"""Floats rounded to those that a quantised tensor could hold."""

from __future__ import annotations

from math import floor

import numpy as np

from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "FAKE_QUANT")
def fake_quant(node: TfliteNode, wire: Wiring) -> Wired:
    """The nearest of so many evenly spaced numbers between two ends, which are moved so that 0 is one of them"""
    x, bits = wire.tensor(0), node.integer("num_bits", 0)
    if not 2 <= bits <= 16:
        raise node.misfit("num_bits", f"is {bits}", "2 to 16")
    first, last = int(node.flag("narrow_range")), (1 << bits) - 1
    low, high = np.float32(node.number("min", 0.0)), np.float32(node.number("max", 0.0))
    scale = (high - low) / np.float32(last - first)
    if not low < high or not np.isfinite(low / scale) or not np.isfinite(scale):
        raise node.misfit("max", f"is {high:g}", f"a number above min, {low:g}, and not too near or too far")
    zero = min(max(floor(float(first - low / scale) + 0.5), first), last)
    least, most = np.float32(first - zero) * scale, np.float32(last - zero) * scale
    inverse = float(np.float32(1) / scale)
    steps = ((x.maximum(float(least)).minimum(float(most)) - float(least)) * inverse + 0.5).floor()
    return steps * float(scale) + float(least)
