"""Branches."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.errors import TractError
from tract_core.model.choices import inside, is_about_facts, questions
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.ops.if_then_else_wiring import Body, known_condition, wire_if
from tract_core.plugins.tables import Rows
from tract_onnx.body import read_body
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "If")
def if_then_else(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """One of two graphs; the right one takes the node's place when the condition is known"""
    condition = wire.input(0)
    taken = known_condition(wire, condition)
    if taken is not None:
        body = read_body(node, wire, node.graph("then_branch" if taken else "else_branch"))
        return inline_body(wire.model, body.model, body.captured)
    since = questions()
    then, other = (_branch(node, wire, name) for name in ("then_branch", "else_branch"))
    return wire.through(wire_if, condition, then, other, since=since)


def _branch(node: OnnxNode, wire: Wiring, name: str) -> Body | TractError:
    """A branch, or why it cannot be typed. Raises TractError for what is wrong with it whatever the sizes."""
    try:
        with inside(name):
            body = read_body(node, wire, node.graph(name), own_scope=True)
    except TractError as error:
        if not is_about_facts(error):
            raise
        return error
    return body.model, body.captured
