"""Exponentials along axes, scaled so that they sum to 1, and their logarithms."""

from __future__ import annotations

from tract_core.dims import product
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Softmax)
@ROWS.row(ONNX_WRITE, LogSoftmax)
def softmax(op: Softmax | LogSoftmax, node: Spelling) -> str:
    """Over one axis; several are moved to the end and made one"""
    op_type = "Softmax" if isinstance(op, Softmax) else "LogSoftmax"
    axes, shape = sorted(op.axes), node.fact().shape
    if len(axes) == 1:
        return node.add(op_type, node.input(), axis=axes[0])
    if not axes:
        one = node.with_axes(node.input(), [len(shape)])
        return node.without_axes(node.add(op_type, one, axis=len(shape)), [len(shape)])
    order = [axis for axis in range(len(shape)) if axis not in axes] + axes
    moved = node.transposed(node.input(), order)
    kept = [shape[axis] for axis in order[: -len(axes)]]
    flat = node.reshaped(moved, [*kept, product(shape[axis] for axis in axes)])
    made = node.reshaped(node.add(op_type, flat, axis=len(kept)), [shape[axis] for axis in order])
    return node.transposed(made, [order.index(axis) for axis in range(len(shape))])
