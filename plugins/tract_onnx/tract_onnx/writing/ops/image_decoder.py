"""Pictures in files."""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.image_decoder import ImageDecoder
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, ImageDecoder)
def image_decoder(op: ImageDecoder, node: Spelling) -> str | None:
    """ImageDecoder, which there is from version 20 on"""
    return node.add("ImageDecoder", node.input(), pixel_format=op.pixel_format) if node.opset >= 20 else None
