"""Texts that a regular expression matches."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.operators.regex import RegexFullMatch
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "RegexFullMatch", since=20)
def regex_full_match(node: OnnxNode, wire: Wiring) -> OutletId:
    """Whether the pattern matches the whole of each text"""
    return wire.op(RegexFullMatch(node.string("pattern")), wire.input(0))
