"""Texts."""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.regex import RegexFullMatch
from tract_onnx.onnx_only.strings import StringConcat, StringNormalizer, StringSplit
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, StringConcat)
def concat(op: StringConcat, node: Spelling) -> str | None:
    """StringConcat, which there is from version 20 on"""
    return node.add("StringConcat", *node.inputs) if node.opset >= 20 else None


@ROWS.row(ONNX_WRITE, StringSplit)
def split(op: StringSplit, node: Spelling) -> tuple[str, ...] | None:
    """StringSplit, which there is from version 20 on"""
    if node.opset < 20:
        return None
    most = {} if op.max_split < 0 else {"maxsplit": op.max_split}
    return node.several("StringSplit", 2, node.input(), delimiter=op.delimiter, **most)


@ROWS.row(ONNX_WRITE, RegexFullMatch)
def regex(op: RegexFullMatch, node: Spelling) -> str | None:
    """RegexFullMatch, which there is from version 20 on"""
    return node.add("RegexFullMatch", node.input(), pattern=op.pattern) if node.opset >= 20 else None


@ROWS.row(ONNX_WRITE, StringNormalizer)
def normalizer(op: StringNormalizer, node: Spelling) -> str:
    """StringNormalizer"""
    words = {"stopwords": list(op.stop_words)} if op.stop_words else {}
    told = {"case_change_action": op.case, "is_case_sensitive": int(op.case_sensitive), "locale": op.locale}
    return node.add("StringNormalizer", node.input(), **told, **words)
