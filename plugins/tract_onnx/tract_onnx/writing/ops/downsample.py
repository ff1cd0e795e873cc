"""Every so many elements of an axis."""

from __future__ import annotations

from tract_core.ops.downsample import Downsample
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Downsample)
def downsample(op: Downsample, node: Spelling) -> str:
    """Slice, in steps"""
    start, end = (-1, -(2**63) + 1) if op.stride < 0 else (op.modulo, 2**63 - 1)
    ends = [node.ints([number]) for number in (start, end, op.axis, op.stride)]
    return node.add("Slice", node.input(), *ends)
