"""Matrices as products of orthogonal ones and triangles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Eq, Lt, Mul, Sub
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.elementwise import Neg, Sqrt, Square
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_torch.ops.linalg import most_rows, turned
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.linalg_qr")
def qr(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """An orthogonal matrix and a triangle whose product is the matrix: Householder's reflections, column by column"""
    r, mode = call.tensor("A"), call.value("mode")
    rank = wire.rank(r)
    rows, columns = most_rows(wire, r), wire.shape(r)[-1]
    if not isinstance(columns, int):
        raise Unsupported(f"the QR decomposition of {columns} columns", hint="fix their number")
    identity = np.eye(rows, dtype=wire.dtype(r).numpy).reshape((1,) * (rank - 2) + (rows, rows))
    q = wire.broadcast(wire.const(identity), (*wire.shape(r)[:-2], rows, rows))
    for step in range(min(rows - 1, columns)):
        v, factor = _reflection(wire, r, step)
        row = wire.op(Mul(), turned(wire, v), factor)
        r = wire.op(Sub(), r, wire.op(Mul(), v, wire.through(wire_matmul, row, r)))
        q = wire.op(Sub(), q, wire.op(Mul(), wire.through(wire_matmul, q, v), row))
    above = np.triu(np.ones((rows, columns), bool)).reshape((1,) * (rank - 2) + (rows, columns))
    r = wire.select(wire.const(above), r, wire.scalar(0, r))
    if mode != "complete":
        q, r = (wire.op(Slice(rank - 2 + axis, 0, min(rows, columns)), one) for axis, one in ((1, q), (0, r)))
    return wire.const(np.zeros(0, wire.dtype(r).numpy)) if mode == "r" else q, r


def _reflection(wire: NodeWiring, r: OutletId, step: int) -> tuple[OutletId, OutletId]:
    """The column that is mirrored at, and twice the inverse of its square; 0 where there is nothing to mirror."""
    rank = wire.rank(r)
    places = np.arange(int(wire.shape(r)[-2])).reshape((1,) * (rank - 2) + (-1, 1))
    column, zero = wire.op(Slice(rank - 1, step, step + 1), r), wire.scalar(0, r)
    below = wire.select(wire.const(places > step), column, zero)
    first = wire.op(Slice(rank - 2, step, step + 1), column)
    rest, whole = _squares(wire, below), wire.op(Square(), first)
    length = wire.op(Sqrt(), wire.op(Add(), rest, whole))
    # away from where the first element is, as LAPACK does, so that nothing cancels
    wanted = wire.select(wire.op(Lt(), first, zero), length, wire.op(Neg(), length))
    v = wire.select(wire.const(places == step), wire.op(Sub(), first, wanted), below)
    factor = wire.op(Div(), wire.scalar(2, r), _squares(wire, v))
    return v, wire.select(wire.op(Eq(), rest, zero), zero, factor)


def _squares(wire: NodeWiring, x: OutletId) -> OutletId:
    return wire.op(Reduce((wire.rank(x) - 2,), Reducer.SUM), wire.op(Square(), x))
