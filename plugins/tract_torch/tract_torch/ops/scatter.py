"""Elements written to positions of a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType, DType
from tract_core.dims import same_dim
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Div, Eq, Mul
from tract_core.ops.concat import TypedConcat
from tract_core.ops.cumsum import CumSum
from tract_core.ops.division_wiring import divided_down
from tract_core.ops.extremes import highest, lowest
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scatter import Reduction, ScatterElements, ScatterNd
from tract_core.ops.slice import Slice
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import by_axis, columns, common_shape, diagonal, in_one_place

ROWS = Rows()

_REDUCTIONS: Final[dict[str, Reduction]] = {
    "add": "add",
    "multiply": "mul",
    "sum": "add",
    "mean": "add",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
}


@aten(ROWS, "aten.scatter.src", "aten.scatter.value", "aten.scatter.reduce", "aten.scatter.value_reduce")
@aten(ROWS, "aten.scatter_add")
def scatter(call: Call, wire: NodeWiring) -> OutletId:
    """Each element of the source written to the position of an axis that the index names"""
    x, index = call.input("self"), wire.i64(call.input("index"))
    source = "src" if call.has("src") else "value"
    updates = _updates(wire, call.operand(source, wire, call.kind), index)
    reduction: Reduction = "add" if "scatter_add" in call.name else "none"
    if call.has("reduce"):
        reduction = _REDUCTIONS[call.text("reduce")]
    return _scattered(call, wire, reduction, x, index, updates)


@aten(ROWS, "aten.scatter_reduce.two")
def scatter_reduce(call: Call, wire: NodeWiring) -> OutletId:
    """Elements of the source combined at each position, with what was there or, by option, without"""
    index = wire.i64(call.input("index"))
    return _reduced(call, wire, index, _updates(wire, call.input("src"), index))


@aten(ROWS, "aten.index_reduce")
def index_reduce(call: Call, wire: NodeWiring) -> OutletId:
    """Slices of the source combined at positions of an axis, with what was there or, by option, without"""
    source = call.input("source")
    axis = call.axis("dim", wire.rank(source)) if wire.rank(source) else 0
    index = wire.sizes(call.input("index"))
    index = wire.unsqueeze(index, [place for place in range(wire.rank(source)) if place != axis])
    return _reduced(call, wire, wire.broadcast(index, wire.shape(source)), source)


def _reduced(call: Call, wire: NodeWiring, index: OutletId, updates: OutletId) -> OutletId:
    x, reduce, included = call.input("self"), call.text("reduce"), call.flag("include_self")
    if not included:
        x = _scattered(call, wire, "none", x, index, _everywhere(wire, _neutral(reduce, call.kind), index))
    found = _scattered(call, wire, _REDUCTIONS[reduce], x, index, updates)
    if reduce != "mean":
        return found
    ones = _everywhere(wire, np.array(1, call.kind.numpy), index)
    begin = wire.broadcast(_number(wire, np.array(included, call.kind.numpy), wire.rank(x)), wire.shape(x))
    count = _scattered(call, wire, "add", begin, index, ones)
    count = wire.select(wire.op(Eq(), count, wire.scalar(0, count)), wire.scalar(1, count), count)
    if call.kind.is_float():
        return wire.op(Div(), found, count)
    return divided_down(Wired(wire, found), Wired(wire, count)).outlet


def _neutral(reduce: str, kind: DType) -> np.ndarray:
    """What changes nothing when it is combined."""
    number = {"sum": 0, "mean": 0, "prod": 1}.get(reduce)
    if number is None:
        number = (lowest if reduce == "amax" else highest)(kind.numpy)
    return np.array(number, kind.numpy)


def _number(wire: NodeWiring, value: np.ndarray, rank: int) -> OutletId:
    return wire.const(value.reshape((1,) * rank))


def _everywhere(wire: NodeWiring, value: np.ndarray, like: OutletId) -> OutletId:
    return wire.broadcast(_number(wire, value, wire.rank(like)), wire.shape(like))


def _updates(wire: NodeWiring, source: OutletId, index: OutletId) -> OutletId:
    """The part of a source that the index has positions for; a number stands at each of them."""
    if wire.rank(source) != wire.rank(index):
        return wire.broadcast(wire.ranks(source, index)[0], wire.shape(index))
    for axis, (size, wanted) in enumerate(zip(wire.shape(source), wire.shape(index), strict=True)):
        if not same_dim(size, wanted):
            source = wire.op(Slice(axis, 0, wanted), source)
    return source


def _scattered(call: Call, wire: NodeWiring, reduction: Reduction, *inputs: OutletId) -> OutletId:
    """``inputs``: what is written to, positions, and what is written."""
    rank = wire.rank(inputs[0])
    if rank:
        return wire.op(ScatterElements(call.axis("dim", rank), reduction), *inputs)
    return wire.number(wire.op(ScatterElements(0, reduction), *(wire.reshape(one, (1,)) for one in inputs)))


@aten(ROWS, "aten.index_put", "aten._index_put_impl", "aten._unsafe_index_put")
def index_put(call: Call, wire: NodeWiring) -> OutletId:
    """``x[i, :, j] = values``: written where tensors of one shape, or masks, name positions; or added there"""
    x, given = call.input("self"), call.optional_inputs("indices")
    values = call.input("values")
    found = [one for one in given if one is not None]
    added = call.flag("accumulate")
    if len(found) == 1 and wire.dtype(found[0]) is DatumType.BOOL and _is_number(wire, values) and not added:
        return _filled(wire, x, given, values)
    places = by_axis(wire, x, given, wire.symbol("picked"))
    return _put(wire, x, places, values, "add" if added else "none")


def _is_number(wire: NodeWiring, x: OutletId) -> bool:
    return all(same_dim(size, 1) for size in wire.shape(x))


def _filled(wire: NodeWiring, x: OutletId, given: Sequence[OutletId | None], value: OutletId) -> OutletId:
    """A number where a mask holds, which needs no positions."""
    first, mask = next((axis, one) for axis, one in enumerate(given) if one is not None)
    last = first + wire.rank(mask)
    wire.require_shape("mask", mask, wire.shape(x)[first:last])
    mask = wire.unsqueeze(mask, [*range(first), *range(last, wire.rank(x))])
    return wire.select(mask, wire.number(value), x)


def _put(
    wire: NodeWiring, x: OutletId, places: dict[int, OutletId], values: OutletId, reduction: Reduction
) -> OutletId:
    """``values`` written to positions along axes, in the shape that reading from there gives."""
    axes, block = list(places), common_shape(wire, list(places.values()))
    order = [*axes, *(axis for axis in range(wire.rank(x)) if axis not in axes)]
    rest = [wire.shape(x)[axis] for axis in order[len(axes) :]]
    first = in_one_place(axes)
    values = wire.unsqueeze(values, range(len(block) + len(rest) - wire.rank(values)))
    values = wire.broadcast(values, [*rest[:first], *block, *rest[first:]])
    moved = range(first, first + len(block))
    values = wire.transpose(values, [*moved, *(axis for axis in range(wire.rank(values)) if axis not in moved)])
    written = wire.op(ScatterNd(reduction), wire.transpose(x, order), columns(wire, list(places.values())), values)
    return wire.transpose(written, [order.index(axis) for axis in range(len(order))])


@aten(ROWS, "aten.put")
def put(call: Call, wire: NodeWiring) -> OutletId:
    """Written to positions among all elements, in row-major order"""
    x, shape = call.input("self"), wire.shape(call.input("self"))
    flat, index, source = (
        wire.reshape(one, (wire.shape(one).volume,)) for one in (x, wire.i64(call.input("index")), call.input("source"))
    )
    reduction: Reduction = "add" if call.flag("accumulate") else "none"
    return wire.reshape(wire.op(ScatterElements(0, reduction), flat, index, source), shape)


@aten(ROWS, "aten.masked_scatter")
def masked_scatter(call: Call, wire: NodeWiring) -> OutletId:
    """Where the mask holds, the elements of the source, one after the other"""
    shape = call.shape()
    x, mask = (wire.broadcast(wire.ranks(call.input(name), call.input("self"))[0], shape) for name in ("self", "mask"))
    flat = wire.reshape(wire.i64(mask), (wire.shape(mask).volume,))
    place = wire.reshape(wire.op(Mul(), wire.op(CumSum(0), flat), flat), shape)
    source = call.input("source")
    # What no element is taken for reads one in front, so that the source may be empty.
    front = wire.const(np.zeros(1, call.kind.numpy))
    source = wire.op(TypedConcat(0), front, wire.reshape(source, (wire.shape(source).volume,)))
    return wire.select(mask, wire.op(Gather(0), source, place), x)


@aten(ROWS, "aten.diagonal_scatter")
def diagonal_scatter(call: Call, wire: NodeWiring) -> OutletId:
    """A tensor with another diagonal, which is the last axis of the source"""
    x, source = call.input("self"), call.input("src")
    a, b = (call.axis(name, wire.rank(x)) for name in ("dim1", "dim2"))
    order = [a, b, *(axis for axis in range(wire.rank(x)) if axis not in (a, b))]
    places = diagonal(wire, wire.shape(x)[a], wire.shape(x)[b], call.integer("offset"))
    last = wire.rank(source) - 1
    written = wire.op(ScatterNd(), wire.transpose(x, order), places, wire.transpose(source, [last, *range(last)]))
    return wire.transpose(written, [order.index(axis) for axis in range(len(order))])
