"""Numbers one after the other."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.range import Range
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


_TAKEN = (DatumType.F32, DatumType.F64, DatumType.I16, DatumType.I32, DatumType.I64, DatumType.TDIM)


@ROWS.row(ONNX_WRITE, Range)
def arange(op: Range, node: Spelling) -> str | None:
    """Range; of narrow floats in f32, rounded once, with as many numbers as they say themselves"""
    kind = node.fact().datum_type
    if kind in _TAKEN:
        return node.add("Range", *node.inputs)
    if not kind.is_float():
        return None
    start, end, step = (node.cast(name, DatumType.F64) for name in node.inputs)
    count = node.cast(node.add("Ceil", node.add("Div", node.add("Sub", end, start), step)), DatumType.I64)
    zero, one = node.constant(0, DatumType.I64), node.constant(1, DatumType.I64)
    places = node.cast(node.add("Range", zero, count, one), DatumType.F32)
    first, by = (node.cast(name, DatumType.F32) for name in (node.input(0), node.input(2)))
    return node.cast(node.add("Add", node.add("Mul", places, by), first), kind)
