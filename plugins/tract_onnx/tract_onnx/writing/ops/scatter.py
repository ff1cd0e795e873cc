"""Elements written to positions."""

from __future__ import annotations

from tract_core.ops.scatter import ScatterElements, ScatterNd
from tract_core.plugins.tables import Rows
from tract_onnx.writing.ops.gather import indices_of
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, ScatterElements)
def scatter_elements(op: ScatterElements, node: Spelling) -> str | None:
    """ScatterElements"""
    if op.reduction in ("min", "max") and node.opset < 18:
        return None
    more = {} if op.reduction == "none" else {"reduction": op.reduction}
    return node.add("ScatterElements", node.input(), indices_of(node), node.input(2), axis=op.axis, **more)


@ROWS.row(ONNX_WRITE, ScatterNd)
def scatter_nd(op: ScatterNd, node: Spelling) -> str | None:
    """ScatterND"""
    if op.reduction in ("min", "max") and node.opset < 18:
        return None
    more = {} if op.reduction == "none" else {"reduction": op.reduction}
    return node.add("ScatterND", node.input(), node.as_i64(1), node.input(2), **more)
