"""Sums, means, norms and extremes along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tract_core.data import DatumType
from tract_core.frontend.precision import rounded_once
from tract_core.model.graph import OutletId
from tract_core.ops.cast import Cast
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.rounding import greatest
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_move_axes
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import ONNX, OnnxFn, onnx_op, row_key
from tract_onnx.wiring import Wiring

ROWS = Rows()

Reduction = Callable[[Wired, Sequence[int]], Wired]
"""``(x, axes) -> result``, in which the axes have size 1."""


def _product(x: Wired, axes: Sequence[int]) -> Wired:
    return x.op(Reduce(tuple(axes), Reducer.PROD))


def _log_sum_exp(x: Wired, axes: Sequence[int]) -> Wired:
    """The largest element is taken out first, so that nothing overflows; an infinite one is left in."""
    limit = greatest(x.dtype)
    largest = x.max(axes).maximum(-limit).minimum(limit)
    return (x - largest).exp().sum(axes).log() + largest


def _of_floats(reduction: Reduction) -> Reduction:
    """The same of integers too, which are converted, and the result converted back."""

    def reduce(x: Wired, axes: Sequence[int]) -> Wired:
        if x.dtype.is_float():
            return reduction(x, axes)
        return reduction(x.op(Cast(DatumType.F64)), axes).op(Cast(x.dtype))

    return reduce


_REDUCTIONS: Final[dict[str, Reduction]] = {
    "ReduceL1": lambda x, axes: abs(x).sum(axes),
    "ReduceL2": _of_floats(lambda x, axes: x.square().sum(axes).sqrt()),
    "ReduceLogSum": _of_floats(lambda x, axes: x.sum(axes).log()),
    "ReduceLogSumExp": _of_floats(_log_sum_exp),
    "ReduceMax": Wired.max,
    "ReduceMean": Wired.mean,
    "ReduceMin": Wired.min,
    "ReduceProd": _product,
    "ReduceSum": Wired.sum,
    "ReduceSumSquare": lambda x, axes: x.square().sum(axes),
}


def _axes_as_attribute(reduction: Reduction) -> OnnxFn:
    def wire_reduction(node: OnnxNode, wire: Wiring) -> Wired:
        return _reduce(node, wire, reduction, node.integers("axes", ()))

    return wire_reduction


def _axes_as_input(reduction: Reduction) -> OnnxFn:
    def wire_reduction(node: OnnxNode, wire: Wiring) -> Wired:
        given = wire.optional_input(1)
        count = 0 if given is None else wire.count(given, f"axes of {node.op_type}")
        if not count and node.flag("noop_with_empty_axes"):
            return reduction(wire.tensor(0), ()) if node.op_type in _NOT_IDLE else wire.tensor(0)
        if given is None or not count:
            return _reduce(node, wire, reduction, ())
        known = wire.constant(given)
        if known is None:
            return _reduce_computed(node, wire, reduction, given, count)
        return _reduce(node, wire, reduction, [int(axis) for axis in known.reshape(-1)])

    return wire_reduction


_NOT_IDLE: Final = frozenset({"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"})
"""Those that change elements even where no axis is reduced."""


def _reduce(node: OnnxNode, wire: Wiring, reduction: Reduction, axes: Sequence[int]) -> Wired:
    x = wire.tensor(0)
    chosen = sorted(wire.axes(axes, x.rank)) or range(x.rank)
    result = reduction(x, chosen)
    return result if node.flag("keepdims", True) else result.squeeze(chosen)


def _reduce_computed(node: OnnxNode, wire: Wiring, reduction: Reduction, axes: OutletId, count: int) -> Wired:
    """The axes are moved to the end, where they are known."""
    moved = wire.tensor(0).through(wire_move_axes, axes)
    last = range(moved.rank - count, moved.rank)
    result = reduction(moved, last)
    return result.through(wire_move_axes, axes, back=True) if node.flag("keepdims", True) else result.squeeze(last)


_OF_SEVERAL: Final = frozenset({"ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"})
"""Those that are several operators."""

for _name, _reduction in _REDUCTIONS.items():
    for _version, _function in (
        (1, _axes_as_attribute(_reduction)),
        (13 if _name == "ReduceSum" else 18, _axes_as_input(_reduction)),
    ):
        ROWS.add(ONNX, row_key(_name, _version), rounded_once()(_function) if _name in _OF_SEVERAL else _function)


@onnx_op(ROWS, "ArgMax")
def arg_max(node: OnnxNode, wire: Wiring) -> Wired:
    """Where the largest element of an axis is"""
    return _arg(node, wire, Reducer.ARG_MAX_FIRST, Reducer.ARG_MAX_LAST)


@onnx_op(ROWS, "ArgMin")
def arg_min(node: OnnxNode, wire: Wiring) -> Wired:
    """Where the smallest element of an axis is"""
    return _arg(node, wire, Reducer.ARG_MIN_FIRST, Reducer.ARG_MIN_LAST)


def _arg(node: OnnxNode, wire: Wiring, first: Reducer, last: Reducer) -> Wired:
    x = wire.tensor(0)
    axis = node.axis("axis", x.rank, 0)
    result = x.op(Reduce((axis,), last if node.flag("select_last_index") else first))
    return result if node.flag("keepdims", True) else result.squeeze([axis])
