"""Distances between rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from tract_core.dims import is_symbolic
from tract_core.errors import Unsupported
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.polar_wiring import ranked
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.ops.reduce import norm_along
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten._cdist_forward", "aten.cdist")
def distances(call: Call, wire: NodeWiring) -> Wired:
    """The norm of the difference of each row of the one and each row of the other"""
    rows, columns = ranked(call.tensor("x1"), call.tensor("x2"))
    difference = rows[..., None, :] - columns[..., None, :, :]
    return norm_along(difference, [rows.rank], call.number("p"))[..., 0]


@aten(ROWS, "aten._pdist_forward")
def distances_within(call: Call, wire: NodeWiring) -> Wired:
    """The norm of the difference of each row and each one that comes after it"""
    x = call.tensor("self")
    count = x.shape[0]
    if is_symbolic(count):
        raise Unsupported(f"distances within {count} rows", hint="fix their number, or take torch.cdist(x, x)")
    pairs = np.array(list(combinations(range(int(count)), 2)), np.int64).reshape(-1, 2)
    one, other = (x.op(Gather(0), x.operand(np.ascontiguousarray(pairs[:, side]))) for side in (0, 1))
    return norm_along(one - other, [1], call.number("p"))[..., 0]
