"""One of two bodies."""

from __future__ import annotations

from tract_core.ops.if_then_else import Branch, IfThenElse
from tract_core.plugins.tables import Rows
from tract_onnx.writing.graph import BodyInput
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, IfThenElse)
def if_then_else(op: IfThenElse, node: Spelling) -> tuple[str, ...]:
    """If, whose branches see what is around them"""
    branches = {"then_branch": _body(op.then_branch, node), "else_branch": _body(op.else_branch, node)}
    return node.several("If", len(node.node.outputs), node.input(0), **branches)


def _body(branch: Branch, node: Spelling) -> object:
    return node.body(branch.body, [BodyInput(node.input(slot)) for slot in branch.inputs])
