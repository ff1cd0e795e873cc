"""Convolutions that read at places which an input moves."""

from __future__ import annotations

import numpy as np

from tract_core.dims import product
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.deform_conv import DeformConv
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "DeformConv", since=19)
def deform_conv(node: OnnxNode, wire: Wiring) -> OutletId:
    """A convolution with offsets, and factors where they are given"""
    x, kernel, offset = wire.input(0), wire.input(1), wire.input(2)
    rank = wire.rank(kernel) - 2
    if rank < 1 or wire.rank(offset) != rank + 2:
        raise FactError(f"a kernel and offsets of the same rank, 3 at least, are wanted, found {wire.fact(offset)}")
    pads = node.each("pads", 2 * rank, 0)
    op = DeformConv(
        strides=node.each("strides", rank, 1),
        dilations=node.each("dilations", rank, 1),
        before=pads[:rank],
        after=pads[rank:],
        group=node.integer("group", 1),
        offset_group=node.integer("offset_group", 1),
    )
    sizes, places = wire.shape(kernel), wire.shape(offset)
    kind = wire.dtype(x).numpy
    bias, mask = wire.optional_input(3), wire.optional_input(4)
    if bias is None:
        bias = wire.broadcast(wire.const(np.zeros(1, kind)), sizes[:1])
    if mask is None:
        reads = product(sizes[2:]) * op.offset_group
        mask = wire.broadcast(wire.const(np.ones((1,) * len(places), kind)), (places[0], reads, *places[2:]))
    return wire.op(op, x, kernel, offset, bias, mask)
