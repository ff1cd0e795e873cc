"""Sums, means, norms and extremes along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Max, Min, Sub
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Abs, Exp, Ln, Sqrt, Square
from tract_core.ops.reduce import Reduce, Reducer, wire_mean
from tract_core.ops.rounding import greatest
from tract_core.ops.wiring_dyn import wire_move_axes
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.precision import rounded_once
from tract_onnx.registry import ONNX, OnnxFn, onnx_op, row_key
from tract_onnx.wiring import Wiring

ROWS = Rows()

Reduction = Callable[[Wiring, OutletId, tuple[int, ...]], OutletId]
"""``(wire, x, axes) -> result``, in which the axes have size 1."""


def _by(reducer: Reducer) -> Reduction:
    def reduce(wire: Wiring, x: OutletId, axes: tuple[int, ...]) -> OutletId:
        return wire.op(Reduce(axes, reducer), x)

    return reduce


_sum = _by(Reducer.SUM)


def _mean(wire: Wiring, x: OutletId, axes: tuple[int, ...]) -> OutletId:
    return wire.through(wire_mean, x, axes)


def _sum_square(wire: Wiring, x: OutletId, axes: tuple[int, ...]) -> OutletId:
    return _sum(wire, wire.op(Square(), x), axes)


def _l1(wire: Wiring, x: OutletId, axes: tuple[int, ...]) -> OutletId:
    return _sum(wire, wire.op(Abs(), x), axes)


def _l2(wire: Wiring, x: OutletId, axes: tuple[int, ...]) -> OutletId:
    return _in_float(wire, x, lambda x: wire.op(Sqrt(), _sum_square(wire, x, axes)))


def _log_sum(wire: Wiring, x: OutletId, axes: tuple[int, ...]) -> OutletId:
    return _in_float(wire, x, lambda x: wire.op(Ln(), _sum(wire, x, axes)))


def _log_sum_exp(wire: Wiring, x: OutletId, axes: tuple[int, ...]) -> OutletId:
    """The largest element is taken out first, so that nothing overflows; an infinite one is left in."""

    def compute(x: OutletId) -> OutletId:
        largest = wire.op(Reduce(axes, Reducer.MAX), x)
        limit = greatest(wire.dtype(x))
        largest = wire.op(Max(), largest, wire.scalar(-limit, x))
        largest = wire.op(Min(), largest, wire.scalar(limit, x))
        total = _sum(wire, wire.op(Exp(), wire.op(Sub(), x, largest)), axes)
        return wire.op(Add(), wire.op(Ln(), total), largest)

    return _in_float(wire, x, compute)


def _in_float(wire: Wiring, x: OutletId, compute: Callable[[OutletId], OutletId]) -> OutletId:
    """``compute`` on floats; integers are converted, and the result converted back."""
    kind = wire.dtype(x)
    if kind.is_float():
        return compute(x)
    return wire.op(Cast(kind), compute(wire.op(Cast(DatumType.F64), x)))


_REDUCTIONS: Final[dict[str, Reduction]] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _by(Reducer.MAX),
    "ReduceMean": _mean,
    "ReduceMin": _by(Reducer.MIN),
    "ReduceProd": _by(Reducer.PROD),
    "ReduceSum": _sum,
    "ReduceSumSquare": _sum_square,
}


def _axes_as_attribute(reduction: Reduction) -> OnnxFn:
    def wire_reduction(node: OnnxNode, wire: Wiring) -> OutletId:
        return _reduce(node, wire, reduction, node.integers("axes", ()))

    return wire_reduction


def _axes_as_input(reduction: Reduction) -> OnnxFn:
    def wire_reduction(node: OnnxNode, wire: Wiring) -> OutletId:
        given = wire.optional_input(1)
        count = 0 if given is None else wire.count(given, f"axes of {node.op_type}")
        if not count and node.flag("noop_with_empty_axes"):
            return reduction(wire, wire.input(0), ()) if node.op_type in _NOT_IDLE else wire.input(0)
        if given is None or not count:
            return _reduce(node, wire, reduction, ())
        known = wire.constant(given)
        if known is None:
            return _reduce_computed(node, wire, reduction, given, count)
        return _reduce(node, wire, reduction, [int(axis) for axis in known.reshape(-1)])

    return wire_reduction


_NOT_IDLE: Final = frozenset({"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"})
"""Those that change elements even where no axis is reduced."""


def _reduce(node: OnnxNode, wire: Wiring, reduction: Reduction, axes: Sequence[int]) -> OutletId:
    x = wire.input(0)
    rank = wire.rank(x)
    chosen = tuple(sorted(wire.axes(axes, rank))) or tuple(range(rank))
    result = reduction(wire, x, chosen)
    return result if node.flag("keepdims", True) else wire.squeeze(result, chosen)


def _reduce_computed(node: OnnxNode, wire: Wiring, reduction: Reduction, axes: OutletId, count: int) -> OutletId:
    """The axes are moved to the end, where they are known."""
    moved = wire.through(wire_move_axes, wire.input(0), axes)
    last = range(wire.rank(moved) - count, wire.rank(moved))
    result = reduction(wire, moved, tuple(last))
    keeps = node.flag("keepdims", True)
    return wire.through(wire_move_axes, result, axes, back=True) if keeps else wire.squeeze(result, last)


_OF_SEVERAL: Final = frozenset({"ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"})
"""Those that are several operators."""

for _name, _reduction in _REDUCTIONS.items():
    for _version, _function in (
        (1, _axes_as_attribute(_reduction)),
        (13 if _name == "ReduceSum" else 18, _axes_as_input(_reduction)),
    ):
        ROWS.add(ONNX, row_key(_name, _version), rounded_once()(_function) if _name in _OF_SEVERAL else _function)


@onnx_op(ROWS, "ArgMax")
def arg_max(node: OnnxNode, wire: Wiring) -> OutletId:
    """Where the largest element of an axis is"""
    return _arg(node, wire, Reducer.ARG_MAX_FIRST, Reducer.ARG_MAX_LAST)


@onnx_op(ROWS, "ArgMin")
def arg_min(node: OnnxNode, wire: Wiring) -> OutletId:
    """Where the smallest element of an axis is"""
    return _arg(node, wire, Reducer.ARG_MIN_FIRST, Reducer.ARG_MIN_LAST)


def _arg(node: OnnxNode, wire: Wiring, first: Reducer, last: Reducer) -> OutletId:
    x = wire.input(0)
    axis = node.axis("axis", wire.rank(x), 0)
    result = wire.op(Reduce((axis,), last if node.flag("select_last_index") else first), x)
    return result if node.flag("keepdims", True) else wire.squeeze(result, [axis])
