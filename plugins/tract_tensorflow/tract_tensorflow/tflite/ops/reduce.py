"""Sums, means, products and extremes along axes, and where extremes are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tract_core.data import DatumType
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import QUANTIZED, TFLITE, TfliteFn, quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

Reduction = Callable[[Wired, Sequence[int]], Wired]
"""``(x, axes) -> result``, in which the axes have size 1."""


def _by(reducer: Reducer) -> Reduction:
    def reduce(x: Wired, axes: Sequence[int]) -> Wired:
        return x.op(Reduce(tuple(axes), reducer))

    return reduce


_REDUCTIONS: Final[dict[str, Reduction]] = {
    "MEAN": Wired.mean,
    "REDUCE_ALL": _by(Reducer.ALL),
    "REDUCE_ANY": _by(Reducer.ANY),
    "REDUCE_MAX": Wired.max,
    "REDUCE_MIN": Wired.min,
    "REDUCE_PROD": _by(Reducer.PROD),
    "SUM": Wired.sum,
}


def _reduction(reduction: Reduction) -> TfliteFn:
    def wire_reduction(node: TfliteNode, wire: Wiring) -> Wired:
        x = wire.tensor(0)
        axes = reduced_axes(wire, x)
        if not axes:
            return x
        result = reduction(x, axes)
        return result if node.flag("keep_dims") else result.squeeze(axes)

    return wire_reduction


def reduced_axes(wire: Wiring, x: Wired) -> list[int]:
    """The axes that the second input names, each once: it may name one twice."""
    named = wire.known_ints(wire.input(1), f"the axes of {wire.node.op_type}")
    return sorted({wire.axis(axis, x.rank) for axis in named} if x.rank else ())


for _name, _function in _REDUCTIONS.items():
    ROWS.add(TFLITE, _name, _reduction(_function))
for _name in ("REDUCE_MAX", "REDUCE_MIN"):  # which only pick one of the integers
    ROWS.add(TFLITE, QUANTIZED + _name, _reduction(_REDUCTIONS[_name]))


@quantized_op(ROWS, "ARG_MAX")
@tflite_op(ROWS, "ARG_MAX")
def arg_max(node: TfliteNode, wire: Wiring) -> Wired:
    """Where the largest element of an axis is, the first of equals"""
    return _arg(wire, Reducer.ARG_MAX_FIRST)


@quantized_op(ROWS, "ARG_MIN")
@tflite_op(ROWS, "ARG_MIN")
def arg_min(node: TfliteNode, wire: Wiring) -> Wired:
    """Where the smallest element of an axis is, the first of equals"""
    return _arg(wire, Reducer.ARG_MIN_FIRST)


def _arg(wire: Wiring, reducer: Reducer) -> Wired:
    x = wire.tensor(0)
    named = wire.known_int(wire.input(1), f"the axis of {wire.node.op_type}")
    axis = wire.axis(named, x.rank)
    found = x.op(Reduce((axis,), reducer)).squeeze([axis])
    return found.cast(wire.node.output().kind or DatumType.I64)
