"""Local response normalisation."""

from __future__ import annotations

from tract_core.ops.lrn import Lrn
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Lrn)
def lrn(op: Lrn, node: Spelling) -> str:
    """LRN, whose channels are axis 1"""
    order = list(range(node.fact().rank))
    order.insert(1, order.pop(op.axis))
    back = [order.index(axis) for axis in range(len(order))]
    x = node.transposed(node.input(), order)
    made = node.add("LRN", x, size=op.size, alpha=op.alpha, beta=op.beta, bias=op.bias)
    return node.transposed(made, back)
