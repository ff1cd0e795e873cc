"""Elements at positions that are computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tract_core.data import DatumType
from tract_core.dims import Dim, broadcast
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()


@aten(ROWS, "aten.embedding")
def embedding(call: Call, wire: NodeWiring) -> OutletId:
    """Rows of a table"""
    return wire.op(Gather(0), call.tensor("weight"), wire.cast(call.tensor("indices"), DatumType.I64))


@aten(ROWS, "aten.index_select")
def index_select(call: Call, wire: NodeWiring) -> OutletId:
    """Positions of an axis"""
    x = call.tensor("self")
    axis = wire.axis(int(call.value("dim")), wire.rank(x))
    return wire.op(Gather(axis), x, wire.cast(call.tensor("index"), DatumType.I64))


@aten(ROWS, "aten.gather")
def gather(call: Call, wire: NodeWiring) -> OutletId:
    """For each element of the index, the element at that position of an axis"""
    x = call.tensor("self")
    axis = wire.axis(int(call.value("dim")), wire.rank(x))
    return wire.op(GatherElements(axis), x, wire.cast(call.tensor("index"), DatumType.I64))


@aten(ROWS, "aten.index.Tensor")
def index(call: Call, wire: NodeWiring) -> OutletId:
    """``x[i, :, j]``: the positions that tensors of one shape name, along the axes where they stand

    Where these axes are neighbours, what they pick stands in their place, else in front, as in NumPy.
    """
    x, given = call.tensor("self"), call.tensors_or_none("indices")
    axes = [axis for axis, one in enumerate(given) if one is not None]
    found = [one for one in given if one is not None]
    if any(wire.dtype(one) is DatumType.BOOL for one in found):
        raise Unsupported("a tensor indexed by a mask", hint="torch.where keeps the shape")
    found = [wire.cast(one, DatumType.I64) for one in found]
    if len(found) == 1:
        return wire.op(Gather(axes[0]), x, found[0])
    shape = reduce(_common, (wire.shape(one) for one in found))
    columns = [wire.unsqueeze(wire.broadcast(one, shape), [len(shape)]) for one in wire.ranks(*found)]
    rest = [axis for axis in range(wire.rank(x)) if axis not in axes]
    picked = wire.op(GatherNd(0), wire.transpose(x, [*axes, *rest]), wire.op(TypedConcat(len(shape)), *columns))
    if axes != list(range(axes[0], axes[-1] + 1)):
        return picked
    places = range(len(shape))
    behind = range(len(shape) + axes[0], wire.rank(picked))
    return wire.transpose(picked, [*range(len(shape), len(shape) + axes[0]), *places, *behind])


def _common(a: Sequence[Dim], b: Sequence[Dim]) -> list[Dim]:
    """The shape of both, broadcast."""
    rank = max(len(a), len(b))
    wide = [[1] * (rank - len(one)) + list(one) for one in (a, b)]
    return [broadcast(left, right) for left, right in zip(*wide, strict=True)]
