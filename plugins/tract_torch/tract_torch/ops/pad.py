"""Tensors with something around them."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.pad import PadConstant
from tract_core.ops.wiring_dyn import wire_pad
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()


@aten(ROWS, "aten.constant_pad_nd")
def constant_pad(call: Call, wire: NodeWiring) -> OutletId:
    """A number around; less than 0 cuts off. The pairs begin with the last axis"""
    x, given = call.tensor("self"), call.dims("pad")
    pairs: list[tuple[Dim, Dim]] = list(zip(given[::2], given[1::2], strict=True))
    pads = [(0, 0)] * (wire.rank(x) - len(pairs)) + pairs[::-1]
    value = Constant(np.array(call.value("value"), wire.dtype(x).numpy))
    return wire.through(wire_pad, x, pads, PadConstant(value))
