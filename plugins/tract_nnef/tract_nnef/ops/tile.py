"""Repeat tensors."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.tile import Tile
from tract_core.ops.wiring_dyn import wire_tile
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(ROWS, STANDARD, "tile<?>(input: tensor<?>, repeats: integer[]) -> (output: tensor<?>)")
def read_tile(call: Call) -> OutletId:
    """The input repeated along each axis, also as often as only a run can tell."""
    x, computed = call.input("input"), call.computed("repeats")
    if computed is not None:
        return wire_tile(call.model, call.unique("tile"), x, computed)
    return call.op(Tile(call.dims("repeats")), x)


@ROWS.row(NNEF_WRITE, Tile)
def write_tile(op: Tile, node: Spelling) -> Invocation | None:
    """By how often each axis is repeated."""
    return node.invoke("tile", node.input(0), repeats=list(op.multipliers))
