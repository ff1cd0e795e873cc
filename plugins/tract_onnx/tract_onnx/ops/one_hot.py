"""Positions as vectors of zeros with a one."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant
from tract_core.model.graph import OutletId
from tract_core.ops.slice import Slice
from tract_core.ops.wiring_dyn import wire_one_hot
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "OneHot", since=9)
def one_hot(node: OnnxNode, wire: Wiring) -> OutletId:
    """A new axis of size ``depth``: the second of ``values`` at the place that the input names, else the first"""
    indices, depth = wire.i64(wire.input(0)), wire.number(wire.i64(wire.input(1)))
    values = wire.reshape(wire.input(2), (2,))
    axis = node.axis("axis", wire.rank(indices) + 1, -1)
    known = wire.constant(values)
    off, on = (Constant(np.array(value)) for value in ((False, True) if known is None else known))
    places = wire.through(wire_one_hot, indices, depth, axis=axis, off=off, on=on)
    if known is not None:
        return places
    off_value, on_value = (wire.op(Slice(0, slot, slot + 1), values) for slot in (0, 1))
    return wire.select(places, on_value, off_value)
