"""The different elements of a tensor, or slices of it."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.model.graph import OutletId
from tract_core.ops.unique import Unique
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Unique", since=11)
def unique(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """The slices that differ, where each occurs first, which of them each slice is, and how often each occurs"""
    x = wire.input(0)
    axis = node.axis("axis", wire.rank(x)) if node.has("axis") else None
    return wire.ops(Unique(axis, node.flag("sorted", True), wire.symbol("unique")), x)
