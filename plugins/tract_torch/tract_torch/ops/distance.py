"""Distances between rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from tract_core.dims import is_symbolic
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Sub
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.ops.reduce import norm_along
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten._cdist_forward", "aten.cdist")
def distances(call: Call, wire: NodeWiring) -> OutletId:
    """The norm of the difference of each row of the one and each row of the other"""
    rows, columns = wire.ranks(call.tensor("x1"), call.tensor("x2"))
    rank = wire.rank(rows)
    difference = wire.op(Sub(), wire.unsqueeze(rows, [rank - 1]), wire.unsqueeze(columns, [rank - 2]))
    return wire.squeeze(norm_along(wire, difference, [rank], float(call.value("p"))), [rank])


@aten(ROWS, "aten._pdist_forward")
def distances_within(call: Call, wire: NodeWiring) -> OutletId:
    """The norm of the difference of each row and each one that comes after it"""
    x = call.tensor("self")
    count = wire.shape(x)[0]
    if is_symbolic(count):
        raise Unsupported(f"distances within {count} rows", hint="fix their number, or take torch.cdist(x, x)")
    pairs = np.array(list(combinations(range(int(count)), 2)), np.int64).reshape(-1, 2)
    one, other = (wire.op(Gather(0), x, wire.const(np.ascontiguousarray(pairs[:, side]))) for side in (0, 1))
    return wire.squeeze(norm_along(wire, wire.op(Sub(), one, other), [1], float(call.value("p"))), [1])
