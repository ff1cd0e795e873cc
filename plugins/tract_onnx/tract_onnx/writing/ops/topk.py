"""The largest or smallest elements of an axis."""

from __future__ import annotations

from tract_core.ops.topk import Topk
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Topk)
def topk(op: Topk, node: Spelling) -> tuple[str, ...]:
    """TopK"""
    count = node.add("Reshape", node.as_i64(1), node.ints([1]))
    return node.several("TopK", 2, node.input(), count, axis=op.axis, largest=int(op.largest), sorted=1)
