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
    """Range"""
    return node.add("Range", *node.inputs) if node.fact().datum_type in _TAKEN else None
