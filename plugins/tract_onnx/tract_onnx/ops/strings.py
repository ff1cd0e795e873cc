"""Operators on texts."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.strings import CASES, StringConcat, StringNormalizer, StringSplit, is_locale
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

_NO_LIMIT = -1


@onnx_op(ROWS, "StringConcat", since=20)
def string_concat(node: OnnxNode, wire: Wiring) -> OutletId:
    """The text of the first input followed by that of the second"""
    return wire.binary(StringConcat(), wire.input(0), wire.input(1))


@onnx_op(ROWS, "StringSplit", since=20)
def string_split(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """Each text cut into pieces, and how many there are"""
    limit = node.integer("maxsplit", _NO_LIMIT)
    op = StringSplit(node.text("delimiter", ""), max(limit, _NO_LIMIT), wire.symbol("pieces"))
    return wire.ops(op, wire.input(0))


@onnx_op(ROWS, "StringNormalizer", since=10)
def string_normalizer(node: OnnxNode, wire: Wiring) -> OutletId:
    """The texts that are no stop words, in upper or lower case where that is asked for"""
    locale = node.text("locale", "en_US")
    if locale and not is_locale(locale):
        raise Unsupported(
            f"attribute 'locale' is {locale[:80]!r}, wanted a language and perhaps a country, as 'en_US'",
            hint="letters are changed by Unicode's rules, which only Turkish and Azeri refine",
        )
    op = StringNormalizer(
        node.choice("case_change_action", CASES, "NONE"),
        node.flag("is_case_sensitive"),
        node.texts("stopwords", ()),
        locale,
        wire.symbol("words"),
    )
    return wire.op(op, wire.input(0))
