"""Real numbers as integers, and back."""

from __future__ import annotations

from typing import Any

from tract_core.data import DatumType
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, QuantizeLinear)
def quantize(op: QuantizeLinear, node: Spelling) -> str | None:
    """QuantizeLinear"""
    told = _along(node, op)
    if told is None:
        return None
    if op.to.is_float() and node.opset >= 19:
        told["saturate"] = int(op.saturate)
    return node.add("QuantizeLinear", *node.inputs, **told)


@ROWS.row(ONNX_WRITE, DequantizeLinear)
def dequantize(op: DequantizeLinear, node: Spelling) -> str | None:
    """DequantizeLinear, whose result has the type of the scale"""
    told = _along(node, op)
    if told is None:
        return None
    inputs = node.inputs
    if node.fact().datum_type is DatumType.I32:
        inputs = inputs[:2]  # the zero point of i32 is 0
    made = node.add("DequantizeLinear", *inputs, **told)
    return made if node.fact(1).datum_type is op.to else node.cast(made, op.to)


def _along(node: Spelling, op: Any) -> dict[str, int] | None:
    if op.block:
        return {"axis": op.axis, "block_size": op.block} if node.opset >= 21 else None
    return {"axis": op.axis} if node.fact().rank else {}
