"""Sums, means, norms and extremes along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tract_core.data import DatumType
from tract_core.frontend.precision import rounded_once
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_move_axes
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import TENSORFLOW, TensorflowFn, tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()

Reduction = Callable[[Wired, Sequence[int]], Wired]
"""``(x, axes) -> result``, in which the axes have size 1."""


def _of(reducer: Reducer) -> Reduction:
    def reduce(x: Wired, axes: Sequence[int]) -> Wired:
        return x.op(Reduce(tuple(axes), reducer))

    return reduce


_REDUCTIONS: Final[dict[str, Reduction]] = {
    "All": _of(Reducer.ALL),
    "Any": _of(Reducer.ANY),
    "EuclideanNorm": lambda x, axes: x.square().sum(axes).sqrt(),
    "Max": Wired.max,
    "Mean": Wired.mean,
    "Min": Wired.min,
    "Prod": _of(Reducer.PROD),
    "Sum": Wired.sum,
}


def _row(reduction: Reduction) -> TensorflowFn:
    def wire_reduction(node: GraphNode, wire: GraphWiring) -> Wired:
        x, given = wire.tensor(0), wire.input(1)
        keeps = node.flag("keep_dims", node.flag("keepdims"))
        known = wire.ints(given, f"axes of {node.op_type}")
        if known is None:
            axes = wire.sizes(given)
            count = wire.count(axes, f"axes of {node.op_type}")
            last = range(x.rank - count, x.rank)
            result = reduction(x.through(wire_move_axes, axes), last)
            return result.through(wire_move_axes, axes, back=True) if keeps else result.squeeze(last)
        chosen = sorted(wire.axes(known, x.rank)) if x.rank else []
        if not chosen:
            return abs(x) if node.op_type == "EuclideanNorm" else x
        result = reduction(x, chosen)
        return result if keeps else result.squeeze(chosen)

    return wire_reduction


for _name, _reduction in _REDUCTIONS.items():
    ROWS.add(TENSORFLOW, _name, rounded_once()(_row(_reduction)) if _name == "EuclideanNorm" else _row(_reduction))


@tf_op(ROWS, "ArgMax", "ArgMin")
def arg(node: GraphNode, wire: GraphWiring) -> Wired:
    """Where the largest, or the smallest, element of an axis is; of equal ones, the first"""
    x = wire.tensor(0)
    (axis,) = wire.known_ints(wire.number(wire.input(1)), f"axis of {node.op_type}")
    axis = wire.axis(axis, x.rank)
    result = x.op(Reduce((axis,), Reducer.ARG_MAX_FIRST if node.op_type == "ArgMax" else Reducer.ARG_MIN_FIRST))
    return result.squeeze([axis]).cast(node.element_type("output_type", DatumType.I64))
