"""Rows of a table, joined by groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.ops.cumsum import CumSum
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scatter import Reduction, ScatterElements, ScatterNd
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_SUM, _MEAN, _MAX = range(3)
_JOINED: Final[dict[int, Reduction]] = {_SUM: "add", _MEAN: "add", _MAX: "max"}


@aten(ROWS, "aten._embedding_bag", "aten._embedding_bag_forward_only")
def embedding_bag(call: Call, wire: NodeWiring) -> Sequence[Wired]:
    """The sum, mean or maximum of the rows of each bag, 0 for an empty one; what else PyTorch computes is left out"""
    table, indices = call.tensor("weight"), call.tensor("indices").cast(DatumType.I64)
    mode, shape, kind = call.integer("mode"), call.shape(), call.kind
    bags = _bags(call.tensor("offsets").cast(DatumType.I64), indices.shape[0])
    rows = table.op(Gather(0), indices)
    if call.has("per_sample_weights"):
        rows = rows * call.tensor("per_sample_weights")[:, None]
    counted = Wired(wire, wire.const(np.ones(1, np.int64))).broadcast(indices.shape)
    start = Wired(wire, wire.const(np.array(-np.inf if mode == _MAX else 0, kind.numpy).reshape(1, 1)))
    padding = call.integer("padding_idx")  # from the front; -1 stands for none
    if padding >= 0:
        counted = indices.ne(padding).cast(DatumType.I64)
        rows = counted.cast(DatumType.BOOL)[:, None].where(rows, start)
    column = bags[:, None]
    joined = start.broadcast(shape).op(ScatterNd(_JOINED[mode]), column, rows)
    if mode == _SUM:
        return [joined]
    none = Wired(wire, wire.const([0])).broadcast(shape[:1])
    sizes = none.op(ScatterElements(0, "add"), bags, counted)[:, None]
    return [joined / sizes.maximum(1).cast(kind) if mode == _MEAN else (sizes >= 1).where(joined, 0)]


def _bags(offsets: Wired, count: Dim) -> Wired:
    """The bag of each index: how many bags have begun there, but for the first one."""
    wire = offsets.wire
    none = Wired(wire, wire.const([0])).broadcast((count + 1,))
    ones = Wired(wire, wire.const([1])).broadcast(offsets.shape)
    begun = none.op(ScatterElements(0, "add"), offsets, ones)
    return begun.part(0, 0, count).op(CumSum(0)) - 1
