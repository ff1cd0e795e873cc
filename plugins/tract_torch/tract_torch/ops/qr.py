"""Matrices as products of orthogonal ones and triangles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.errors import Unsupported
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.ops.linalg import most_rows, turned
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.linalg_qr")
def qr(call: Call, wire: NodeWiring) -> Sequence[Wired]:
    """An orthogonal matrix and a triangle whose product is the matrix: Householder's reflections, column by column"""
    r, mode = call.tensor("A"), call.value("mode")
    rows, columns = most_rows(r), r.shape[-1]
    if not isinstance(columns, int):
        raise Unsupported(f"the QR decomposition of {columns} columns", hint="fix their number")
    lead, least = (None,) * (r.rank - 2), min(rows, columns)
    q = r.operand(np.eye(rows, dtype=r.dtype.numpy)[lead]).broadcast((*r.shape[:-2], rows, rows))
    for step in range(min(rows - 1, columns)):
        v, factor = _reflection(r, step)
        row = turned(v) * factor
        r = r - v * row.through(wire_matmul, r.outlet)
        q = q - q.through(wire_matmul, v.outlet) * row
    r = r.operand(np.triu(np.ones((rows, columns), bool))[lead]).where(r, 0)
    if mode != "complete":
        q, r = q[..., :least], r[..., :least, :]
    return r.operand(np.zeros(0, r.dtype.numpy)) if mode == "r" else q, r


def _reflection(r: Wired, step: int) -> tuple[Wired, Wired]:
    """The column that is mirrored at, and twice the inverse of its square; 0 where there is nothing to mirror."""
    rows = r.rank - 2
    places = np.arange(int(r.shape[-2])).reshape((1,) * rows + (-1, 1))
    column = r[..., step : step + 1]
    below = r.operand(places > step).where(column, 0)
    first = column[..., step : step + 1, :]
    rest = below.square().sum([rows])
    length = (rest + first.square()).sqrt()
    # away from where the first element is, as LAPACK does, so that nothing cancels
    wanted = (first < 0).where(length, -length)
    v = r.operand(places == step).where(first - wanted, below)
    return v, rest.eq(0).where(0, 2 / v.square().sum([rows]))
