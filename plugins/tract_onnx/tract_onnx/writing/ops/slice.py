"""Ranges of axes."""

from __future__ import annotations

from tract_core.ops.slice import DynSlice, Slice
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Slice)
def slice_of(op: Slice, node: Spelling) -> str:
    """Slice"""
    is_rest = op.end == node.fact().shape[op.axis]
    end = node.ints([2**63 - 1]) if is_rest else node.sizes([op.end])
    return node.add("Slice", node.input(), node.sizes([op.start]), end, node.ints([op.axis]))


@ROWS.row(ONNX_WRITE, DynSlice)
def dyn_slice(op: DynSlice, node: Spelling) -> str:
    """Slice, whose bounds have an axis"""
    start, end = (node.add("Reshape", node.as_i64(slot), node.ints([1])) for slot in (1, 2))
    return node.add("Slice", node.input(), start, end, node.ints([op.axis]))
