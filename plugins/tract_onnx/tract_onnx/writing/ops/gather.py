"""Elements picked by their positions."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


def indices_of(node: Spelling) -> str:
    """Positions, which may be of i32 here"""
    return node.input(1) if node.fact(1).datum_type is DatumType.I32 else node.as_i64(1)


@ROWS.row(ONNX_WRITE, Gather)
def gather(op: Gather, node: Spelling) -> str:
    """Gather"""
    return node.add("Gather", node.input(), indices_of(node), axis=op.axis)


@ROWS.row(ONNX_WRITE, GatherElements)
def gather_elements(op: GatherElements, node: Spelling) -> str:
    """GatherElements"""
    return node.add("GatherElements", node.input(), indices_of(node), axis=op.axis)


@ROWS.row(ONNX_WRITE, GatherNd)
def gather_nd(op: GatherNd, node: Spelling) -> str:
    """GatherND"""
    return node.add("GatherND", node.input(), node.as_i64(1), batch_dims=op.batch_dims)
