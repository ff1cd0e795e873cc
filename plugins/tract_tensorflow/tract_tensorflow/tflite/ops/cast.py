"""Elements in another type."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.ops.fft import ComplexToInnerDim
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "CAST")
@tflite_op(ROWS, "CAST")
def cast(node: TfliteNode, wire: Wiring) -> Wired:
    """In the type of the output; what integers stand for does not matter, and imaginary parts are left out"""
    x, kind = wire.tensor(0), _kind(node)
    if x.dtype.is_complex() and not kind.is_complex():
        x = x.op(ComplexToInnerDim())[..., 0]
    return x.cast(kind)


@tflite_op(ROWS, "DEQUANTIZE")
def dequantize(node: TfliteNode, wire: Wiring) -> Wired:
    """Narrow floats as wide ones"""
    x = wire.tensor(0)
    if not x.dtype.is_float():
        raise Unsupported(f"DEQUANTIZE of {x.fact}, which have no scale")
    return x.cast(_kind(node))


def _kind(node: TfliteNode) -> DatumType:
    kind = node.output().kind
    if kind is None:
        raise Unsupported(f"{node.op_type} to {node.output().type_name}")
    return kind
