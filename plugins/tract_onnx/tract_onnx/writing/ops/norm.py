"""Normalisation by the mean of squares."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.norm import RmsNorm
from tract_core.plugins.tables import Rows
from tract_onnx.writing.elements import is_narrow
from tract_onnx.writing.ops.reduce import reduced
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, RmsNorm)
def rms_norm(op: RmsNorm, node: Spelling) -> str:
    """Over the last axis RMSNormalization, from version 23 on; else what it is made of, in f32"""
    x, kind, rank = node.input(), node.fact().datum_type, node.fact().rank
    size = node.fact().shape[op.axis]
    if node.opset >= 23 and op.axis == rank - 1 and isinstance(size, int):
        ones = node.constant([1] * size, kind)
        return node.add("RMSNormalization", x, ones, axis=-1, epsilon=op.eps)
    narrow = is_narrow(kind)
    wide = node.cast(x, DatumType.F32) if narrow else x
    squares = node.add("Mul", wide, wide)
    mean = reduced(node, "ReduceMean", squares, [op.axis])
    eps = node.constant(op.eps, DatumType.F32 if narrow else kind)
    made = node.add("Div", wide, node.add("Sqrt", node.add("Add", mean, eps)))
    return node.cast(made, kind) if narrow else made
