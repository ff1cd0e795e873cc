"""Sequences, and values that may be missing."""

from __future__ import annotations

from tract_core.ops.optional import OptionalConstruct, OptionalGetElement, OptionalHasElement, OptionalNone
from tract_core.ops.sequence import (
    ConcatFromSequence,
    SequenceAt,
    SequenceConstruct,
    SequenceErase,
    SequenceInsert,
    SequenceLength,
    SplitToSequence,
)
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


_PLAIN = {
    SequenceAt: "SequenceAt",
    SequenceErase: "SequenceErase",
    SequenceInsert: "SequenceInsert",
    SequenceLength: "SequenceLength",
    OptionalGetElement: "OptionalGetElement",
    OptionalHasElement: "OptionalHasElement",
    OptionalConstruct: "Optional",
}


def plain(op: object, node: Spelling) -> str:
    """The operator of that name"""
    return node.add(_PLAIN[type(op)], *node.inputs)  # pyright: ignore[reportArgumentType]: the keys are what is written so


for _kind in _PLAIN:
    ROWS.row(ONNX_WRITE, _kind)(plain)


@ROWS.row(ONNX_WRITE, OptionalNone)
def none(op: OptionalNone, node: Spelling) -> str:
    """Optional of a type"""
    return node.no_value(op.item)


@ROWS.row(ONNX_WRITE, SequenceConstruct)
def construct(op: SequenceConstruct, node: Spelling) -> str | None:
    """SequenceConstruct, or SequenceEmpty"""
    if node.node.inputs:
        return node.add("SequenceConstruct", *node.inputs)
    return node.empty_sequence(op.datum_type)


@ROWS.row(ONNX_WRITE, SplitToSequence)
def split(op: SplitToSequence, node: Spelling) -> str:
    """SplitToSequence, whose pieces keep their axis where it is said how large they are"""
    if not op.keep_axis:
        return node.add("SplitToSequence", node.input(), axis=op.axis, keepdims=0)
    return node.add("SplitToSequence", *node.inputs, axis=op.axis)


@ROWS.row(ONNX_WRITE, ConcatFromSequence)
def concat(op: ConcatFromSequence, node: Spelling) -> str:
    """ConcatFromSequence"""
    return node.add("ConcatFromSequence", node.input(), axis=op.axis, new_axis=int(op.new_axis))
