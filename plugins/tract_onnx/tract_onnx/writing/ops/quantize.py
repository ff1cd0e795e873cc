"""Real numbers as integers, and back."""

from __future__ import annotations

from typing import Any

from tract_core.data import DatumType
from tract_core.ops.quantize import (
    DequantizeLinear,
    LookupTable,
    OffsetI8asU8,
    OffsetU8asI8,
    QuantizeLinear,
    Scale,
)
from tract_core.ops.rounding import limits
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


@ROWS.row(ONNX_WRITE, LookupTable)
def lookup_table(op: LookupTable, node: Spelling) -> str | None:
    """Gather, for which -1 is the last entry of a table, as it is for an i8 with the bits of 255"""
    return node.add("Gather", node.held(op.table), node.cast(node.input(), DatumType.I32), axis=0)


@ROWS.row(ONNX_WRITE, OffsetI8asU8, OffsetU8asI8)
def offset(op: OffsetI8asU8 | OffsetU8asI8, node: Spelling) -> str | None:
    """Add of 128, or of -128, in i32; none of a quantised type, for which the format has no words"""
    if node.fact().datum_type.is_quantized():
        return None
    moved = node.constant(128 if isinstance(op, OffsetI8asU8) else -128, DatumType.I32)
    return node.cast(node.add("Add", node.cast(node.input(), DatumType.I32), moved), node.result().datum_type)


@ROWS.row(ONNX_WRITE, Scale)
def scale(op: Scale, node: Spelling) -> str | None:
    """Mul in f64, Round, and Clip to what the type holds"""
    kind = node.result().datum_type
    if kind.is_quantized() or kind.storage.itemsize > 4:
        return None  # f64 does not hold all integers of 64 bits
    wide = [node.cast(name, DatumType.F64) for name in node.inputs]
    ends = [node.constant(end, DatumType.F64) for end in limits(kind.storage)]
    bounded = node.add("Clip", node.add("Round", node.add("Mul", *wide)), *ends)
    return node.cast(bounded, kind)


def _along(node: Spelling, op: Any) -> dict[str, int] | None:
    if op.block:
        return {"axis": op.axis, "block_size": op.block} if node.opset >= 21 else None
    return {"axis": op.axis} if node.fact().rank else {}
