"""Parts of tensors: slices, and tensors cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.dims import Dim, is_symbolic
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Lt
from tract_core.ops.gather import Gather
from tract_core.ops.slice import DynSlice, Slice, wire_dyn_slice
from tract_core.ops.wired import Wired
from tract_core.ops.wiring import equal_part
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "SLICE")
@tflite_op(ROWS, "SLICE")
def slice_of(node: TfliteNode, wire: Wiring) -> OutletId:
    """From a place on each axis so many elements on; -1 is up to the end"""
    x, begins, sizes = wire.input(0), wire.input(1), wire.input(2)
    for what, given in (("places", begins), ("sizes", sizes)):
        if wire.count(given, what) != wire.rank(x):
            raise CorruptModel(f"{wire.count(given, what)} {what} are given for {wire.fact(x)}")
    for axis in range(wire.rank(x)):
        x = _from_place(wire, x, axis, _number(wire, begins, axis), _number(wire, sizes, axis))
    return x


def _from_place(wire: Wiring, x: OutletId, axis: int, begin: OutletId, size: OutletId) -> OutletId:
    first, count, whole = _dim(wire, begin), _dim(wire, size), wire.shape(x)[axis]
    if count is None:
        to_the_end = wire.op(Lt(), size, wire.const(0))
        end = wire.select(to_the_end, wire.const(whole), wire.op(Add(), begin, size))
        return wire.through(wire_dyn_slice, x, axis, start=begin, end=end)
    if first is None and count == -1:
        return wire.through(wire_dyn_slice, x, axis, start=begin, end=wire.const(whole))
    if first is None:
        return wire.op(DynSlice(axis, count), x, begin, wire.op(Add(), begin, size))
    if count == -1:
        count = whole - first
    return x if (first, count) == (0, whole) else wire.op(Slice(axis, first, first + count), x)


def _number(wire: Wiring, x: OutletId, place: int) -> OutletId:
    """One element of a list, as i64 with no axes."""
    return wire.i64(wire.element(x, place))


def _dim(wire: Wiring, x: OutletId) -> Dim | None:
    found = wire.dims(x)
    return None if found is None else found[0]


@quantized_op(ROWS, "STRIDED_SLICE")
@tflite_op(ROWS, "STRIDED_SLICE")
def strided_slice(node: TfliteNode, wire: Wiring) -> OutletId:
    """What ``x[begin:end:stride, ...]`` gives, with one element of the lists for each part between the brackets"""
    x, begins, ends = wire.input(0), wire.input(1), wire.input(2)
    strides = wire.known_ints(wire.input(3), "the strides of STRIDED_SLICE")
    if not wire.count(begins, "places") == wire.count(ends, "ends") == len(strides):
        raise CorruptModel(f"{wire.fact(begins)}, {wire.fact(ends)} and {len(strides)} strides are given")
    axis, dropped, added = 0, list[int](), list[int]()
    for part in _parts(node, len(strides), wire.rank(x)):
        if part is None:
            axis += 1
        elif node.integer("new_axis_mask", 0) >> part & 1:
            added.append(axis - len(dropped) + len(added))
        else:
            x = _part(wire, x, axis, part, strides[part])
            dropped += [axis] if node.integer("shrink_axis_mask", 0) >> part & 1 else []
            axis += 1
    if axis > wire.rank(x):
        raise CorruptModel(f"{len(strides)} parts are given for {wire.fact(x)}")
    x = wire.squeeze(x, dropped) if dropped else x
    return wire.unsqueeze(x, added) if added else x


def _parts(node: TfliteNode, count: int, rank: int) -> list[int | None]:
    """Which part each axis, and each new one, has; ``None`` for an axis that stays whole. Raises CorruptModel."""
    ellipses = [part for part in range(count) if node.integer("ellipsis_mask", 0) >> part & 1]
    new = [part for part in range(count) if node.integer("new_axis_mask", 0) >> part & 1 and part not in ellipses]
    missing = rank - (count - len(new) - len(ellipses))
    if len(ellipses) > 1 or missing < 0:
        raise CorruptModel(f"STRIDED_SLICE has {count} parts, and {len(ellipses)} ellipses, for {rank} axes")
    found: list[int | None] = []
    for part in range(count):
        found += [None] * missing if part in ellipses else [part]
    return found


def _part(wire: Wiring, x: OutletId, axis: int, part: int, stride: int) -> OutletId:
    """One axis: an element, which keeps size 1, or a slice."""
    node = wire.node
    if axis >= wire.rank(x):
        raise CorruptModel(f"STRIDED_SLICE names axis {axis} of {wire.fact(x)}")
    if stride == 0:
        raise CorruptModel(f"stride {part} of STRIDED_SLICE is 0")
    begin, end = _number(wire, wire.input(1), part), _number(wire, wire.input(2), part)
    if node.integer("shrink_axis_mask", 0) >> part & 1:
        return _element(wire, x, axis, wire.const(0) if node.integer("begin_mask", 0) >> part & 1 else begin)
    if node.flag("offset"):
        end = wire.op(Add(), begin, end)
    far = np.iinfo(np.int64).max
    if node.integer("begin_mask", 0) >> part & 1:
        begin = wire.const(0 if stride > 0 else far)
    if node.integer("end_mask", 0) >> part & 1:
        end = wire.const(far if stride > 0 else -far)
    return wire.through(wire_dyn_slice, x, axis, start=begin, end=end, step=stride)


def _element(wire: Wiring, x: OutletId, axis: int, place: OutletId) -> OutletId:
    known, size = wire.constant(place), wire.shape(x)[axis]
    if known is None:
        return wire.op(Gather(axis), x, wire.unsqueeze(place, [0]))
    first = int(known) if int(known) >= 0 else size + int(known)
    return wire.op(Slice(axis, first, first + 1), x)


@quantized_op(ROWS, "SPLIT")
@tflite_op(ROWS, "SPLIT")
def split(node: TfliteNode, wire: Wiring) -> Sequence[OutletId]:
    """In equal pieces; the axis is an input"""
    axis = wire.known_int(wire.input(0), "the axis of SPLIT")
    x, count = wire.input(1), len(node.outputs)
    axis = wire.axis(axis, wire.rank(x))
    if node.integer("num_splits", count) != count:
        raise node.misfit("num_splits", f"is {node.integer('num_splits')}", f"{count}, as many as there are outputs")
    return _pieces(wire, x, axis, (equal_part(_size(wire, x, axis), count),) * count)


@quantized_op(ROWS, "SPLIT_V")
@tflite_op(ROWS, "SPLIT_V")
def split_v(node: TfliteNode, wire: Wiring) -> Sequence[OutletId]:
    """In pieces of given sizes, one of which may be what is left over, -1"""
    x, given = wire.input(0), wire.dims(wire.input(1))
    axis = wire.known_int(wire.input(2), "the axis of SPLIT_V")
    axis = wire.axis(axis, wire.rank(x))
    if given is None:
        raise Unsupported(f"the sizes of SPLIT_V must be known when the model is loaded: {wire.fact(wire.input(1))}")
    sizes, whole = list(given), _size(wire, x, axis)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = whole - (sum(sizes) + 1)
    if len(sizes) != len(node.outputs) or not may_equal(sum(sizes), whole) or any(_is_negative(one) for one in sizes):
        raise CorruptModel(f"pieces of sizes {list(map(str, given))} of {wire.fact(x)}, {len(node.outputs)} outputs")
    return _pieces(wire, x, axis, sizes)


def _size(wire: Wiring, x: OutletId, axis: int) -> Dim:
    if wire.rank(x) == 0:
        raise FactError("a tensor without axes cannot be cut into pieces")
    return wire.shape(x)[axis]


def _is_negative(size: Dim) -> bool:
    return not is_symbolic(size) and int(size) < 0


def _pieces(wire: Wiring, x: OutletId, axis: int, sizes: Sequence[Dim]) -> list[OutletId]:
    found: list[OutletId] = []
    start: Dim = 0
    for size in sizes:
        found.append(wire.op(Slice(axis, start, start + size), x))
        start = start + size
    return found


@quantized_op(ROWS, "UNPACK")
@tflite_op(ROWS, "UNPACK")
def unpack(node: TfliteNode, wire: Wiring) -> Sequence[OutletId]:
    """One tensor for each place on an axis"""
    x, count = wire.input(0), len(node.outputs)
    axis = node.axis("axis", wire.rank(x), 0)
    if not may_equal(_size(wire, x, axis), count):
        raise CorruptModel(f"{count} outputs are wanted of axis {axis} of {wire.fact(x)}")
    return [wire.squeeze(piece, [axis]) for piece in _pieces(wire, x, axis, (1,) * count)]


@quantized_op(ROWS, "DYNAMIC_UPDATE_SLICE")
@tflite_op(ROWS, "DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(node: TfliteNode, wire: Wiring) -> Wired:
    """With a tensor written over it, from a place on that is moved as far as it has room"""
    x, update, starts = wire.tensor(0), wire.tensor(1), wire.input(2)
    if wire.count(starts, "places") != x.rank:
        raise CorruptModel(f"{wire.fact(starts)} says from where on {update.fact} is written into {x.fact}")
    return written_at(wire, x, update, [Wired(wire, _number(wire, starts, axis)) for axis in range(x.rank)])


def written_at(wire: Wiring, x: Wired, update: Wired, starts: Sequence[Wired]) -> Wired:
    """``x`` with ``update`` written over it. ``starts``: i64 of no axes, moved as far as there is room.

    Raises CorruptModel for tensors of different ranks.
    """
    if update.rank != x.rank:
        raise CorruptModel(f"{update.fact} is to be written into {x.fact}")
    places = [
        start.minimum(wire_dim(wire, size - length)).maximum(0)
        for start, size, length in zip(starts, x.shape, update.shape, strict=True)
    ]
    return _written(wire, x, update, places, 0)


def wire_dim(wire: Wiring, size: Dim) -> Wired:
    """A size, or a number, as a tensor without axes."""
    return Wired(wire, wire.const(size))


def _written(wire: Wiring, x: Wired, update: Wired, places: Sequence[Wired], axis: int) -> Wired:
    """What stands before the update on an axis, what is written between, and what stands behind."""
    while axis < x.rank and x.shape[axis] == update.shape[axis]:
        axis += 1
    if axis == x.rank:
        return update
    size, length, place = x.shape[axis], update.shape[axis], places[axis]
    known = _dim(wire, place.outlet)
    before = wire.symbol("before") if known is None else known
    start, zero = place.outlet, wire.const(0)
    end, whole = (place + wire_dim(wire, length)).outlet, wire.const(size)
    ends = ((zero, start, before), (start, end, length), (end, whole, size - before - length))
    parts = [Wired(wire, wire.op(DynSlice(axis, count), x.outlet, low, high)) for low, high, count in ends]
    middle = _written(wire, parts[1], update, places, axis + 1)
    return parts[0].concat([middle, parts[2]], axis)
