"""Pictures from image files."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.image_decoder import CHANNELS, ImageDecoder, pillow
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "ImageDecoder", since=20)
def image_decoder(node: OnnxNode, wire: Wiring) -> OutletId:
    """The pixels of an encoded image, decoded by Pillow"""
    pillow()
    form = node.choice("pixel_format", CHANNELS, "RGB")
    return wire.op(ImageDecoder(form, wire.symbol("height"), wire.symbol("width")), wire.input(0))
