"""Axes that move where an input says: the same memory, looked at in another way."""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.fuse.known import LATE

from tract_core.dims import Dim
from tract_core.ops.axis_dyn import DynMoveAxes, order_now
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import MOVES

ROWS = Rows()


def _order(op: DynMoveAxes, shapes: list[Shape], axes: Array) -> Reading:
    shape = shapes[0]
    order = order_now(op, len(shape), axes)
    chosen = [int(axis == place) for place in order for axis in range(len(shape))]
    return Reading([[shape[axis] for axis in order]], chosen)


ROWS.add(READS, DynMoveAxes, Reads((1,), _order))


@ROWS.row(MOVES, DynMoveAxes)
def lower_move_axes(op: DynMoveAxes, site: Site) -> str | None:
    """A view. For each of its axes, the numbers say which axis it was: 1 for that one, 0 for all others."""
    x, _ = site.known_inputs()
    rank = len(x.shape)
    chosen = site.numbers(rank * rank)
    if chosen is None:
        return LATE
    strides: list[Dim] = [0] * rank
    for number, stride in enumerate(x.strides * rank):
        strides[number // rank] = strides[number // rank] + chosen[number] * stride
    site.place(replace(x, shape=tuple(op.sizes), strides=tuple(strides)))
    return None
