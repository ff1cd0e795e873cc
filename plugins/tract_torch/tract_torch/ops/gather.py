"""Elements at positions that are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, product
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add
from tract_core.ops.compress import Compress
from tract_core.ops.cumsum import CumSum
from tract_core.ops.fill import DynFill
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import by_axis, columns, common_shape, diagonal, in_one_place, steps

ROWS = Rows()


@aten(ROWS, "aten.embedding")
def embedding(call: Call, wire: NodeWiring) -> OutletId:
    """Rows of a table"""
    return wire.op(Gather(0), call.input("weight"), wire.i64(call.input("indices")))


@aten(ROWS, "aten.index_select")
def index_select(call: Call, wire: NodeWiring) -> OutletId:
    """Positions of an axis"""
    x, index = call.input("self"), wire.sizes(call.input("index"))
    if not wire.rank(x):
        return wire.squeeze(wire.op(Gather(0), wire.unsqueeze(x, [0]), index), [0])
    return wire.op(Gather(call.axis("dim", wire.rank(x))), x, index)


@aten(ROWS, "aten.gather")
def gather(call: Call, wire: NodeWiring) -> OutletId:
    """For each element of the index, the element at that position of an axis"""
    x, index = call.input("self"), wire.i64(call.input("index"))
    if not wire.rank(x):
        return wire.squeeze(wire.op(Gather(0), wire.unsqueeze(x, [0]), wire.sizes(index)), [0])
    return wire.op(GatherElements(call.axis("dim", wire.rank(x))), x, index)


@aten(ROWS, "aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(call: Call, wire: NodeWiring) -> OutletId:
    """``x[i, :, j]``: the positions that tensors of one shape name, along the axes where they stand

    Where these axes are neighbours, what they pick stands in their place, else in front, as in NumPy. A mask stands for
    the positions of what is true in it, along as many axes as it has.
    """
    x, given = call.input("self"), call.optional_inputs("indices")
    found = by_axis(wire, x, given, _count(call, wire, given))
    axes = list(found)
    if len(axes) == 1:
        return wire.op(Gather(axes[0]), x, found[axes[0]])
    rest = [axis for axis in range(wire.rank(x)) if axis not in axes]
    picked = wire.op(GatherNd(0), wire.transpose(x, [*axes, *rest]), columns(wire, list(found.values())))
    first, block = in_one_place(axes), len(common_shape(wire, list(found.values())))
    before = range(block, block + first)
    return wire.transpose(picked, [*before, *range(block), *range(block + first, wire.rank(picked))])


@aten(ROWS, "aten.masked_select")
def masked_select(call: Call, wire: NodeWiring) -> OutletId:
    """The elements where a mask holds, as a list; both stretch to one shape"""
    x, mask = wire.ranks(call.input("self"), call.input("mask"))
    shape = common_shape(wire, [x, mask])
    x, mask = (wire.reshape(wire.broadcast(one, shape), (product(shape),)) for one in (x, mask))
    return wire.op(Compress(0, call.shape()[0]), x, mask)


def _count(call: Call, wire: NodeWiring, given: Sequence[OutletId | None]) -> Dim:
    """How many elements a mask picks, where there is one: a symbol of the program, if the result has such a size."""
    found = [one for one in given if one is not None]
    masks = [one for one in found if wire.dtype(one) is DatumType.BOOL]
    if not masks:
        return 0
    if len(found) > 1:
        return wire.symbol("picked")
    first = [place for place, one in enumerate(given) if one is not None]
    return call.shape()[first[0]]


@aten(ROWS, "aten.diagonal")
def diagonal_of(call: Call, wire: NodeWiring) -> OutletId:
    """A diagonal of two axes, as a last axis"""
    x = call.input("self")
    a, b = (call.axis(name, wire.rank(x)) for name in ("dim1", "dim2"))
    rest = [axis for axis in range(wire.rank(x)) if axis not in (a, b)]
    places = diagonal(wire, wire.shape(x)[a], wire.shape(x)[b], call.integer("offset"))
    found = wire.op(GatherNd(0), wire.transpose(x, [a, b, *rest]), places)
    return wire.transpose(found, [*range(1, wire.rank(found)), 0])


@aten(ROWS, "aten.unfold")
def unfold(call: Call, wire: NodeWiring) -> OutletId:
    """Pieces of an axis, which may overlap: the axis counts them, and a last axis has their elements"""
    x, step, size = call.input("self"), call.value("step"), call.dim("size")
    if not wire.rank(x):
        return wire.broadcast(wire.unsqueeze(x, [0]), call.shape())
    axis = call.axis("dimension", wire.rank(x))
    starts = wire.unsqueeze(steps(wire, 0, call.shape()[axis], step), [1])
    found = wire.op(Gather(axis), x, wire.binary(Add(), starts, steps(wire, 0, size)))
    order = [place for place in range(wire.rank(found)) if place != axis + 1]
    return wire.transpose(found, [*order, axis + 1])


@aten(ROWS, "aten.as_strided", "aten.as_strided_copy")
def as_strided(call: Call, wire: NodeWiring) -> OutletId:
    """Elements of memory at distances that are given: of a tensor that lies there in its own order"""
    x = call.input("self")
    theirs = cast("Any", call.node.args[0]).meta["val"]
    if not theirs.is_contiguous() or theirs.storage_offset() != 0:
        hint = "call contiguous() before, or index with tensors"
        raise Unsupported("as_strided of a tensor that is a view of another one in memory", hint=hint)
    places = wire.const(call.dim("storage_offset", 0))
    for size, stride in zip(call.dims("size"), call.dims("stride"), strict=True):
        places = wire.binary(Add(), wire.unsqueeze(places, [wire.rank(places)]), steps(wire, 0, size, stride))
    return wire.op(Gather(0), wire.reshape(x, (wire.shape(x).volume,)), places)


@aten(ROWS, "aten.repeat_interleave.Tensor")
def repeat_interleave(call: Call, wire: NodeWiring) -> Wired:
    """Each position as often as the number there says, one after the other

    A 1 is added where each position begins; the running sum then counts the positions.
    """
    repeats = call.tensor("repeats").cast(DatumType.I64)
    zeros = repeats.sum([0]).op(DynFill(Constant(np.array(0)), call.shape()))
    begins = repeats.op(CumSum(0)) - repeats
    ones = Wired(wire, wire.const([1])).broadcast(repeats.shape)
    begun = zeros.concat([zeros.like(0)], 0).op(ScatterElements(0, "add"), begins, ones)
    counted = begun.part(0, 0, call.shape()[0]).op(CumSum(0))
    return (counted - 1).cast(call.kind)
