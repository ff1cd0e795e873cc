"""Branches."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.model.graph import OutletId
from tract_core.ops.if_then_else_wiring import Body, wire_branches
from tract_core.plugins.tables import Rows
from tract_onnx.body import read_body
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "If")
def if_then_else(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """One of two graphs; the right one takes the node's place when the condition is known"""

    def read(name: str, own_scope: bool) -> Body:
        body = read_body(node, wire, node.graph(name), own_scope=own_scope)
        return body.model, body.captured

    names = "then_branch", "else_branch"
    return wire_branches(wire.model, wire.label("if"), wire.input(0), names, read)
