"""Axes moved to where the run says."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.axis_dyn import DynMoveAxes
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, DynMoveAxes)
def dyn_move_axes(op: DynMoveAxes, node: Spelling) -> str:
    """Gather of all elements by their places, as Transpose takes no order from the run"""
    x, rank = node.input(), node.fact().rank
    order = _order(node, rank, back=op.back)
    shape = node.add("Shape", x)
    strides = _products(node, shape, rank)
    sizes, steps = node.add("Gather", shape, order), node.add("Gather", strides, order)
    places = node.ints([0])
    for axis in range(rank):
        size, step = (node.add("Gather", one, node.constant(axis, DatumType.I64)) for one in (sizes, steps))
        zero, one = node.constant(0, DatumType.I64), node.constant(1, DatumType.I64)
        along = node.add("Mul", node.add("Range", zero, size, one), step)
        form = [-1 if place == axis else 1 for place in range(rank)]
        places = node.add("Add", places, node.add("Reshape", along, node.ints(form)))
    return node.add("Gather", node.add("Reshape", x, node.ints([-1])), places, axis=0)


def _order(node: Spelling, rank: int, *, back: bool) -> str:
    """Which axis of the input stands in each place of the result."""
    all_axes = node.ints(list(range(rank)))
    axes = node.add("Mod", node.as_i64(1), node.ints([rank]))
    ones = node.add("Expand", node.ints([1]), node.add("Shape", axes))
    is_moved = node.add("ScatterElements", node.ints([0] * rank), axes, ones, axis=0)
    stay = node.add("Compress", all_axes, node.add("Equal", is_moved, node.ints([0])), axis=0)
    order = node.add("Concat", stay, axes, axis=0)
    return node.add("ScatterElements", node.ints([0] * rank), order, all_axes, axis=0) if back else order


def _products(node: Spelling, shape: str, rank: int) -> str:
    """How far apart the elements of each axis are."""
    parts = [node.ints([1])]
    for axis in range(rank - 1, 0, -1):
        size = node.add("Gather", shape, node.ints([axis]))
        parts.insert(0, node.add("Mul", parts[0], size))
    return node.add("Concat", *parts, axis=0)
