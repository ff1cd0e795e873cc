"""Parts of tensors: slices, and tensors split into pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.dims import Dim, exact_div, is_symbolic
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.frontend.wiring import MAX_COUNT
from tract_core.frozen import frozen
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Lt
from tract_core.ops.concat import TypedConcat
from tract_core.ops.slice import DynSlice, Slice, wire_dyn_slice, wire_slice
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Slice")
def plain_slice(node: GraphNode, wire: GraphWiring) -> OutletId:
    """As many elements of each axis as the third input says, from where the second says; -1 are all that follow"""
    x, begins, sizes = wire.input(0), wire.sizes(wire.input(1)), wire.sizes(wire.input(2))
    for given, what in ((begins, "starts"), (sizes, "sizes")):
        wire.require_shape(f"list of {what}", given, (wire.rank(x),))
    for axis in range(wire.rank(x)):
        x = _part(wire, x, axis, wire.element(begins, axis), wire.element(sizes, axis))
    return x


def _part(wire: GraphWiring, x: OutletId, axis: int, begin: OutletId, size: OutletId) -> OutletId:
    first, count = wire.dims(begin), wire.dims(size)
    whole = wire.shape(x)[axis]
    if count is not None and count[0] == -1:
        if first is not None:
            return x if first[0] == 0 else wire.op(Slice(axis, first[0], whole), x)
        return wire.through(wire_dyn_slice, x, axis, start=begin, end=wire.const(whole))
    if first is not None and count is not None:
        if first[0] == 0 and count[0] == whole:
            return x
        return wire.op(Slice(axis, first[0], first[0] + count[0]), x)
    length = wire.symbol("piece") if count is None else count[0]
    return wire.op(DynSlice(axis, length), x, begin, wire.op(Add(), begin, size))


@frozen
class _Masks:
    """The bits of the attributes of a StridedSlice, one for each entry of the lists."""

    begin: int
    end: int
    ellipsis: int
    added: int
    dropped: int

    @staticmethod
    def of(node: GraphNode) -> _Masks:
        names = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
        return _Masks(*(node.integer(f"{name}_mask", 0) for name in names))


@tf_op(ROWS, "StridedSlice")
def strided_slice(node: GraphNode, wire: GraphWiring) -> OutletId:
    """x[begin:end:stride] on some axes, as Python means it; bits of attributes say where something else is meant"""
    x, masks = wire.input(0), _Masks.of(node)
    begins, ends, strides = (wire.sizes(wire.input(slot)) for slot in (1, 2, 3))
    count = wire.count(begins, "starts of StridedSlice")
    if count > 64 or any(wire.count(given, "parameters of StridedSlice") != count for given in (ends, strides)):
        raise CorruptModel(f"{count} starts are given, ends and strides for as many are wanted")
    steps = wire.known_ints(strides, "strides of StridedSlice")
    if 0 in steps:
        raise CorruptModel("a stride of StridedSlice is 0")
    used = [entry for entry in range(count) if not _bit(masks.ellipsis, entry)]
    consumed = sum(not _bit(masks.added, entry) for entry in used)
    skipped = wire.rank(x) - consumed
    if skipped < 0 or count - len(used) > 1:
        raise FactError(f"{count} slices are given for {wire.fact(x)}")
    axis, place = 0, 0  # of the input, and of the result
    dropped: list[int] = []
    added: list[int] = []
    for entry in range(count):
        if _bit(masks.ellipsis, entry):
            axis, place = axis + skipped, place + skipped
        elif _bit(masks.added, entry):
            added.append(place)
            place += 1
        elif _bit(masks.dropped, entry):
            x = _one(wire, x, axis, wire.element(begins, entry))
            dropped.append(axis)
            axis += 1
        else:
            start = None if _bit(masks.begin, entry) else wire.element(begins, entry)
            end = None if _bit(masks.end, entry) else wire.element(ends, entry)
            x = _strided(wire, x, axis, (start, end), steps[entry])
            axis, place = axis + 1, place + 1
    x = wire.squeeze(x, dropped) if dropped else x
    return wire.unsqueeze(x, added) if added else x


def _bit(mask: int, entry: int) -> bool:
    return bool(mask >> entry & 1)


def _one(wire: GraphWiring, x: OutletId, axis: int, place: OutletId) -> OutletId:
    """The element at a place, which may count from the end, on an axis of size 1."""
    known, size = wire.dims(place), wire.shape(x)[axis]
    if known is not None:
        start = known[0]
        if not is_symbolic(start) and int(start) < 0:
            start = size + int(start)
        return wire.op(Slice(axis, start, start + 1), x)
    from_front = wire.select(wire.op(Lt(), place, wire.const(0)), wire.op(Add(), place, wire.const(size)), place)
    return wire.op(DynSlice(axis, 1), x, from_front, wire.op(Add(), from_front, wire.const(1)))


def _strided(wire: GraphWiring, x: OutletId, axis: int, bounds: Sequence[OutletId | None], step: int) -> OutletId:
    """``x[start:end:step]`` on an axis; ``bounds``: start and end, ``None`` for none."""
    known = [None if bound is None else wire.dims(bound) for bound in bounds]
    if all(bound is None or found is not None for bound, found in zip(bounds, known, strict=True)):
        first, last = (None if one is None else one[0] for one in known)
        return wire.through(wire_slice, x, axis, start=first, end=last, step=step)
    if step < 0:
        raise Unsupported("a StridedSlice with computed bounds goes backwards")
    start, end = bounds
    start = wire.const(0) if start is None else start
    end = wire.const(wire.shape(x)[axis]) if end is None else end
    return wire.through(wire_dyn_slice, x, axis, start=start, end=end, step=step)


@tf_op(ROWS, "Split")
def split(node: GraphNode, wire: GraphWiring) -> Sequence[OutletId]:
    """X in equal pieces"""
    x, count = wire.input(1), node.integer("num_split")
    axis = _split_axis(wire, x, 0)
    size = wire.shape(x)[axis]
    if not 1 <= count <= MAX_COUNT:
        raise CorruptModel(f"Split into {count} pieces, from 1 to {MAX_COUNT} are allowed")
    piece = exact_div(size, count)
    if piece is None and not is_symbolic(size):
        raise CorruptModel(f"Split of an axis of size {size} into {count} equal pieces")
    return _pieces(wire, x, axis, [size // count if piece is None else piece] * count)


@tf_op(ROWS, "SplitV")
def split_into(node: GraphNode, wire: GraphWiring) -> Sequence[OutletId]:
    """X in pieces of the sizes that the second input holds; one of them may be -1, and is what is left"""
    x, axis = wire.input(0), _split_axis(wire, wire.input(0), 2)
    sizes = wire.dims(wire.input(1))
    if sizes is None:
        raise Unsupported("the sizes of SplitV are computed, wanted numbers or sizes of inputs")
    whole = wire.shape(x)[axis]
    if sizes.count(-1) == 1:
        rest = whole - sum(size for size in sizes if size != -1)
        sizes = tuple(rest if size == -1 else size for size in sizes)
    if any(not is_symbolic(size) and int(size) < 0 for size in sizes) or not may_equal(sum(sizes), whole):
        raise CorruptModel(f"SplitV into pieces of sizes {', '.join(map(str, sizes))}, of an axis of size {whole}")
    return _pieces(wire, x, axis, sizes)


def _split_axis(wire: GraphWiring, x: OutletId, slot: int) -> int:
    (axis,) = wire.known_ints(wire.number(wire.input(slot)), "axis of a split")
    if wire.rank(x) == 0:
        raise FactError("a tensor without axes cannot be split")
    return wire.axis(axis, wire.rank(x))


def _pieces(wire: GraphWiring, x: OutletId, axis: int, sizes: Sequence[Dim]) -> list[OutletId]:
    outlets: list[OutletId] = []
    start: Dim = 0
    for size in sizes:
        outlets.append(wire.op(Slice(axis, start, start + size), x))
        start = start + size
    return outlets


@tf_op(ROWS, "Unpack")
def unpack(node: GraphNode, wire: GraphWiring) -> Sequence[OutletId]:
    """The slices of one axis, without it"""
    x, count = wire.input(0), node.integer("num")
    if wire.rank(x) == 0 or not 0 <= count <= MAX_COUNT:
        raise FactError(f"Unpack of {wire.fact(x)} into {count} slices")
    axis = node.axis("axis", wire.rank(x), 0)
    if not may_equal(wire.shape(x)[axis], count):
        raise FactError(f"Unpack into {count} slices, of an axis of size {wire.shape(x)[axis]}")
    return [wire.squeeze(wire.op(Slice(axis, place, place + 1), x), [axis]) for place in range(count)]


@tf_op(ROWS, "Roll")
def roll(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X moved along some axes: what leaves it at one end comes in at the other"""
    x = wire.input(0)
    _want_axes(wire, x)
    steps = wire.known_ints(wire.input(1), "shifts of Roll")
    axes = [wire.axis(axis, wire.rank(x)) for axis in wire.known_ints(wire.input(2), "axes of Roll")]
    if len(steps) != len(axes):
        raise CorruptModel(f"{len(steps)} shifts are given for {len(axes)} axes")
    for axis, step in zip(axes, steps, strict=True):
        size = wire.shape(x)[axis]
        moved = step if is_symbolic(size) else step % max(int(size), 1)
        if moved:
            cut = size - moved if moved > 0 else -moved
            pieces = _pieces(wire, x, axis, [cut, size - cut])
            x = wire.op(TypedConcat(axis), *reversed(pieces))
    return x


@tf_op(ROWS, "ReverseV2")
def reverse(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X backwards along the axes that the second input holds"""
    x = wire.input(0)
    return _backwards(wire, x, wire.axes(wire.known_ints(wire.input(1), "axes of ReverseV2"), wire.rank(x)))


@tf_op(ROWS, "Reverse")
def reverse_flagged(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X backwards along the axes for which the second input is true"""
    flags = wire.known(wire.input(1), "axes of Reverse").reshape(-1)
    return _backwards(wire, wire.input(0), wire.axes(np.flatnonzero(flags).tolist(), wire.rank(wire.input(0))))


def _want_axes(wire: GraphWiring, x: OutletId) -> None:
    if wire.rank(x) == 0:
        raise FactError(f"at least one axis is wanted, found {wire.fact(x)}")


def _backwards(wire: GraphWiring, x: OutletId, axes: Sequence[int]) -> OutletId:
    _want_axes(wire, x)
    for axis in axes:
        x = wire.through(wire_slice, x, axis, start=None, end=None, step=-1)
    return x
