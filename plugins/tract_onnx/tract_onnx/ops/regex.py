"""What regular expressions find in texts."""

from __future__ import annotations

from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.regex import RegexFullMatch, Tokenizer
from tract_onnx.registry import MICROSOFT_DOMAIN, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "RegexFullMatch", since=20)
def regex_full_match(node: OnnxNode, wire: Wiring) -> OutletId:
    """Whether the pattern matches the whole of each text"""
    return wire.op(RegexFullMatch(node.text("pattern")), wire.input(0))


@onnx_op(ROWS, "Tokenizer", domain=MICROSOFT_DOMAIN)
def tokenizer(node: OnnxNode, wire: Wiring) -> OutletId:
    """Each text cut into tokens: what an expression matches, or what stands between separators"""
    expression, separators = node.text("tokenexp", ""), node.texts("separators", ())
    if not (expression or separators):
        raise CorruptModel("Tokenizer has neither an expression for tokens nor one for what separates them")
    shortest = node.integer("mincharnum")
    if shortest < 1:
        raise node.misfit("mincharnum", f"is {shortest}", "1 or more")
    op = Tokenizer(expression, separators, shortest, node.flag("mark"), node.text("pad_value"), wire.symbol("tokens"))
    return wire.op(op, wire.input(0))
