"""Convolutions that read at places which an input moves, of torchvision."""

from __future__ import annotations

import numpy as np

from tract_core.dims import product
from tract_core.model.graph import OutletId
from tract_core.ops.deform_conv import DeformConv
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "torchvision.deform_conv2d")
def deform_conv(call: Call, wire: NodeWiring) -> OutletId:
    """A convolution with offsets, and factors where they are used"""
    stride, pad, dilation = ([call.integer(f"{one}_{axis}") for axis in "hw"] for one in ("stride", "pad", "dilation"))
    groups = call.integer("groups"), call.integer("offset_groups")
    op = DeformConv(tuple(stride), tuple(dilation), tuple(pad), tuple(pad), *groups)
    x, kernel, offset, mask = (call.input(name) for name in ("input", "weight", "offset", "mask"))
    if not call.flag("use_mask"):
        reads = product(wire.shape(kernel)[2:]) * op.offset_group
        whole = np.ones((1, 1, 1, 1), wire.dtype(x).numpy)
        mask = wire.broadcast(wire.const(whole), (wire.shape(offset)[0], reads, *wire.shape(offset)[2:]))
    return wire.op(op, x, kernel, offset, call.input("bias"), mask)
