"""The different elements of a tensor, or slices of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.model.graph import OutletId
from tract_core.ops.binary import Ne, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.cumsum import CumSum
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.slice import Slice
from tract_core.ops.unique import Unique
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import non_zero

ROWS = Rows()


@aten(ROWS, "aten._unique2", "aten._unique")
def unique(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The different elements in ascending order, which of them each element is, and how often each occurs"""
    x = call.input("self")
    found, _, which, counts = wire.ops(Unique(None, True, call.shape()[0], joins_nans=False), x)
    return _asked(call, wire, found, wire.reshape(which, wire.shape(x)), counts)


@aten(ROWS, "aten.unique_dim")
def unique_dim(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The different slices of an axis in ascending order, which of them each slice is, and how often each occurs"""
    x = call.input("self")
    axis = call.axis("dim", wire.rank(x))
    found, _, which, counts = wire.ops(Unique(axis, True, call.shape()[axis]), x)
    return found, which, counts


@aten(ROWS, "aten.unique_consecutive", "aten.unique_dim_consecutive")
def unique_consecutive(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """Each slice that differs from the one before, which of them each slice is, and how many are the same in a row"""
    x = call.input("self")
    axis = call.axis("dim", wire.rank(x)) if call.has("dim") else 0
    shape = wire.shape(x) if not call.has("dim") else (wire.shape(x)[axis],)
    if not call.has("dim"):
        x = wire.reshape(x, (wire.shape(x).volume,))
    size, count = wire.shape(x)[axis], call.shape()[axis]
    differ = wire.binary(Ne(), wire.op(Slice(axis, 1, size), x), wire.op(Slice(axis, 0, size - 1), x))
    others = tuple(place for place in range(wire.rank(x)) if place != axis)
    if others:
        differ = wire.squeeze(wire.op(Reduce(others, Reducer.ANY), differ), others)
    begins = wire.op(TypedConcat(0), wire.const(np.array([True])), differ)
    (places,) = non_zero(wire, begins, count)
    which = wire.binary(Sub(), wire.op(CumSum(0), wire.i64(begins)), wire.const([1]))
    ends = wire.op(TypedConcat(0), wire.op(Slice(0, 1, count), places), wire.const([size]))
    return _asked(
        call, wire, wire.op(Gather(axis), x, places), wire.reshape(which, shape), wire.binary(Sub(), ends, places)
    )


def _asked(call: Call, wire: NodeWiring, found: OutletId, which: OutletId, counts: OutletId) -> list[OutletId]:
    """The outputs, of which those that were not asked for are empty."""
    empty = wire.const(np.zeros(0, np.int64))
    asked = [not call.has(name) or call.flag(name) for name in ("return_inverse", "return_counts")]
    return [found, *(one if wanted else empty for one, wanted in zip((which, counts), asked, strict=True))]
