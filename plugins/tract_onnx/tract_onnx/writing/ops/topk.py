"""The largest or smallest elements of an axis."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.topk import Topk
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Topk)
def topk(op: Topk, node: Spelling) -> tuple[str, ...]:
    """TopK"""
    plain = node.fact(1).datum_type in (DatumType.I64, DatumType.TDIM)
    count = node.add("Reshape", node.input(1), node.ints([1]))
    count = count if plain else node.cast(count, DatumType.I64)
    return node.several("TopK", 2, node.input(), count, axis=op.axis, largest=int(op.largest), sorted=1)
