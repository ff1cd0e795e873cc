"""Elements picked by their positions."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


def indices_of(node: Spelling, slot: int = 1) -> str:
    """Positions in a type that the format takes as such"""
    kind = node.fact(slot).datum_type
    is_taken = kind in (DatumType.I64, DatumType.I32, DatumType.TDIM)
    return node.input(slot) if is_taken else node.cast(node.input(slot), DatumType.I64)


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
    indices = node.cast(node.input(1), DatumType.I64) if node.fact(1).datum_type is not DatumType.I64 else node.input(1)
    return node.add("GatherND", node.input(), indices, batch_dims=op.batch_dims)
