"""Axes reduced to size 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.data import DatumType
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


_PLAIN: Final[Mapping[Reducer, str]] = {
    Reducer.SUM: "ReduceSum",
    Reducer.PROD: "ReduceProd",
    Reducer.MIN: "ReduceMin",
    Reducer.MAX: "ReduceMax",
}
_PLACES: Final[Mapping[Reducer, tuple[str, int]]] = {
    Reducer.ARG_MAX_FIRST: ("ArgMax", 0),
    Reducer.ARG_MAX_LAST: ("ArgMax", 1),
    Reducer.ARG_MIN_FIRST: ("ArgMin", 0),
    Reducer.ARG_MIN_LAST: ("ArgMin", 1),
}


@ROWS.row(ONNX_WRITE, Reduce)
def reduce(op: Reduce, node: Spelling) -> str:
    """The reduction of that meaning"""
    x, axes = node.input(), sorted(op.axes)
    if op.reducer in _PLACES:
        op_type, last = _PLACES[op.reducer]
        return node.add(op_type, x, axis=axes[0], keepdims=1, select_last_index=last)
    if op.reducer is Reducer.MEAN_OF_SQUARES:
        return reduced(node, "ReduceMean", node.add("Mul", x, x), axes)
    if op.reducer in (Reducer.ALL, Reducer.ANY):
        numbers = node.cast(x, DatumType.I32)
        op_type = "ReduceMin" if op.reducer is Reducer.ALL else "ReduceMax"
        return node.cast(reduced(node, op_type, numbers, axes), DatumType.BOOL)
    return reduced(node, _PLAIN[op.reducer], x, axes)


def reduced(node: Spelling, op_type: str, x: str, axes: list[int]) -> str:
    """A reduction, whose axes are an input from version 18 on, those of a sum before"""
    if node.opset >= 18 or op_type == "ReduceSum":
        return node.add(op_type, x, node.ints(axes), keepdims=1)
    return node.add(op_type, x, axes=axes, keepdims=1)
