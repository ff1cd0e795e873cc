"""Elements divided by what those around them are."""

from __future__ import annotations

from tract_core.ops.lrn import Lrn
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "L2_NORMALIZATION")
def l2_normalization(node: TfliteNode, wire: Wiring) -> Wired:
    """Along the last axis, divided by the root of the sum of the squares, which is at least 1e-6"""
    x = wire.tensor(0)
    return activated(x / x.square().sum([x.rank - 1]).sqrt().maximum(1e-6), node)


@tflite_op(ROWS, "LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(node: TfliteNode, wire: Wiring) -> Wired:
    """Along the last axis, divided by a power of the sum of the squares of the elements within a radius"""
    x, radius = wire.tensor(0), node.integer("radius", 0)
    if radius < 0:
        raise node.misfit("radius", f"is {radius}", "0 or more")
    size = 2 * radius + 1
    alpha, beta, bias = (node.number(name, 0.0) for name in ("alpha", "beta", "bias"))
    return x.op(Lrn(size, alpha * size, beta, bias, x.rank - 1))
