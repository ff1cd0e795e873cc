"""Bands of frequencies."""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.mel import MelWeightMatrix
from tract_onnx.writing.elements import code_of
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, MelWeightMatrix)
def mel(op: MelWeightMatrix, node: Spelling) -> str:
    """MelWeightMatrix"""
    return node.add("MelWeightMatrix", *node.inputs, output_datatype=code_of(op.to))
