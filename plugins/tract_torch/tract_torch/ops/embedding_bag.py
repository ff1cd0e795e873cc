"""Rows of a table, joined by groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Div, Ge, Max, Mul, Ne, Sub
from tract_core.ops.cumsum import CumSum
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scatter import Reduction, ScatterElements, ScatterNd
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_SUM, _MEAN, _MAX = range(3)
_JOINED: Final[dict[int, Reduction]] = {_SUM: "add", _MEAN: "add", _MAX: "max"}


@aten(ROWS, "aten._embedding_bag", "aten._embedding_bag_forward_only")
def embedding_bag(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The sum, mean or maximum of the rows of each bag, 0 for an empty one; what else PyTorch computes is left out"""
    table, indices = call.input("weight"), wire.i64(call.input("indices"))
    mode, shape, kind = call.integer("mode"), call.shape(), call.kind
    bags = _bags(wire, wire.i64(call.input("offsets")), wire.shape(indices)[0])
    rows = wire.op(Gather(0), table, indices)
    if call.has("per_sample_weights"):
        rows = wire.binary(Mul(), rows, wire.unsqueeze(call.input("per_sample_weights"), [1]))
    counted = wire.broadcast(wire.const(np.ones(1, np.int64)), wire.shape(indices))
    start = wire.const(np.array(-np.inf if mode == _MAX else 0, kind.numpy).reshape(1, 1))
    padding = _padding(call, wire, table)
    if padding is not None:
        counted = wire.i64(wire.binary(Ne(), indices, padding))
        kept = wire.unsqueeze(wire.cast(counted, DatumType.BOOL), [1])
        rows = wire.select(kept, rows, start)
    column = wire.unsqueeze(bags, [1])
    joined = wire.op(ScatterNd(_JOINED[mode]), wire.broadcast(start, shape), column, rows)
    if mode == _SUM:
        return [joined]
    none = wire.broadcast(wire.const([0]), shape[:1])
    sizes = wire.unsqueeze(wire.op(ScatterElements(0, "add"), none, bags, counted), [1])
    one = wire.const(np.ones((1, 1), np.int64))
    if mode == _MEAN:
        return [wire.binary(Div(), joined, wire.cast(wire.binary(Max(), sizes, one), kind))]
    return [wire.select(wire.binary(Ge(), sizes, one), joined, wire.const(np.zeros((1, 1), kind.numpy)))]


def _bags(wire: NodeWiring, offsets: OutletId, count: Dim) -> OutletId:
    """The bag of each index: how many bags have begun there, but for the first one."""
    none = wire.broadcast(wire.const([0]), (count + 1,))
    ones = wire.broadcast(wire.const([1]), wire.shape(offsets))
    begun = wire.op(ScatterElements(0, "add"), none, offsets, ones)
    return wire.binary(Sub(), wire.op(CumSum(0), wire.op(Slice(0, 0, count), begun)), wire.const([1]))


def _padding(call: Call, wire: NodeWiring, table: OutletId) -> OutletId | None:
    """The index that counts for nothing, from the front, where there is one: -1 stands for none."""
    index = call.integer("padding_idx")
    return wire.const([index]) if index >= 0 else None
