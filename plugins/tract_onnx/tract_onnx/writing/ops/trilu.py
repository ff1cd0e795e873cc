"""Halves of matrices."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.trilu import Trilu
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Trilu)
def trilu(op: Trilu, node: Spelling) -> str:
    """Trilu"""
    plain = node.fact(1).datum_type in (DatumType.I64, DatumType.TDIM)
    k = node.input(1) if plain else node.cast(node.input(1), DatumType.I64)
    return node.add("Trilu", node.input(), k, upper=int(op.upper))
