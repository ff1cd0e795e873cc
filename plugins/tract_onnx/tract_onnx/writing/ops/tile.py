"""Tensors repeated as a whole."""

from __future__ import annotations

from tract_core.ops.tile import DynTile, Tile
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Tile)
def tile(op: Tile, node: Spelling) -> str:
    """Tile"""
    return node.add("Tile", node.input(), node.sizes(op.multipliers))


@ROWS.row(ONNX_WRITE, DynTile)
def dyn_tile(op: DynTile, node: Spelling) -> str:
    """Tile"""
    return node.add("Tile", node.input(), node.as_i64(1))
