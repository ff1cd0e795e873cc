"""Blocks of an image, as columns, put back into the image."""

from __future__ import annotations

from tract_core.dims import exact_div, is_symbolic, product
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.col2im import Col2Im
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Col2Im", since=18)
def col2im(node: OnnxNode, wire: Wiring) -> OutletId:
    """The image to which all blocks are added"""
    x, image, block = wire.input(0), wire.sizes(wire.input(1)), wire.sizes(wire.input(2))
    rank = wire.count(image, "axes of the image")
    sizes, block_sizes = wire.dims(image), wire.dims(block)
    channels = None
    if block_sizes is not None and wire.rank(x) == 3:
        channels = exact_div(wire.shape(x)[1], product(block_sizes))
        if channels is None and not is_symbolic(wire.shape(x)[1]):
            raise FactError(f"columns of {wire.fact(x)} do not hold whole blocks of {list(block_sizes)}")
    pads = node.each("pads", 2 * rank, 0)
    op = Col2Im(
        channels=wire.symbol("channels") if channels is None else channels,
        sizes=tuple(wire.symbol("size") for _ in range(rank)) if sizes is None else sizes,
        strides=node.each("strides", rank, 1),
        dilations=node.each("dilations", rank, 1),
        before=pads[:rank],
        after=pads[rank:],
    )
    return wire.op(op, x, image, block)
