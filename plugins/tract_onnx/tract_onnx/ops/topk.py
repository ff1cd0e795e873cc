"""The largest or smallest elements of an axis."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_topk
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "TopK")
def topk_1(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """How many is an attribute"""
    return _topk(node, wire, wire.const(node.integer("k")))


@onnx_op(ROWS, "TopK", since=10)
def topk_10(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """How many is an input"""
    return _topk(node, wire, wire.number(wire.input(1)))


def _topk(node: OnnxNode, wire: Wiring, k: OutletId) -> Sequence[OutletId]:
    # Without ``sorted``, any order will do.
    x = wire.input(0)
    axis = node.axis("axis", wire.rank(x), -1)
    return wire.through(wire_topk, x, k, axis, largest=node.flag("largest", True))
