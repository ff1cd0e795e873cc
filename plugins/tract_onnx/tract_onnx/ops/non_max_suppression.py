"""Boxes that do not overlap much with better ones."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType, DType
from tract_core.model.graph import OutletId
from tract_core.ops.non_max_suppression import NonMaxSuppression
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "NonMaxSuppression", since=10)
def non_max_suppression(node: OnnxNode, wire: Wiring) -> OutletId:
    """Image, class and number of each box that is kept"""
    most = _number(wire, 2, 0, DatumType.I64)
    overlap, least = _number(wire, 3, 0.0, DatumType.F32), _number(wire, 4, -np.inf, DatumType.F32)
    op = NonMaxSuppression(node.flag("center_point_box"), wire.symbol("boxes"))
    return wire.op(op, wire.input(0), wire.input(1), most, overlap, least)


def _number(wire: Wiring, slot: int, default: float, kind: DType) -> OutletId:
    given = wire.optional_input(slot)
    return wire.cast(wire.const(default), kind) if given is None else wire.number(given)
