"""Parts of tensors: slices, and tensors split into pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.dims import Dim, ceil_div, dim_max, exact_div, is_symbolic
from tract_core.errors import CorruptModel, FactError
from tract_core.frontend.wiring import MAX_COUNT
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Lt, Max, Min, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.gather import Gather
from tract_core.ops.slice import DynSlice, Slice, wire_dyn_slice, wire_slice
from tract_core.ops.wiring_dyn import wire_move_axes, wire_range
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Slice")
def slice_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """``x[start:end]`` on some axes, the bounds being attributes"""
    x = wire.input(0)
    starts, ends = node.integers("starts"), node.integers("ends")
    axes = node.axes("axes", wire.rank(x), range(len(starts)))
    if not len(starts) == len(ends) == len(axes):
        raise CorruptModel(f"{len(starts)} starts, {len(ends)} ends and {len(axes)} axes are given")
    for axis, start, end in zip(axes, starts, ends, strict=True):
        x = wire.through(wire_slice, x, axis, start=start, end=end)
    return x


@onnx_op(ROWS, "DynamicSlice")  # what it was called while it was experimental
@onnx_op(ROWS, "Slice", since=10)
def slice_10(node: OnnxNode, wire: Wiring) -> OutletId:
    """``x[start:end:step]`` on some axes, the bounds being inputs"""
    x, axes = wire.input(0), None if wire.optional_input(3) is None else wire.sizes(wire.input(3))
    starts, ends, steps = _lists(wire, x, axes)
    count = wire.count(starts, "starts of Slice")
    lengths = [wire.count(given, "parameters of Slice") for given in (ends, axes, steps) if given is not None]
    if any(length != count for length in lengths):
        raise CorruptModel(f"{count} starts are given, and {lengths} ends, axes and steps")
    if count > wire.rank(x):
        raise CorruptModel(f"{count} slices are given for a tensor of {wire.rank(x)} axes")
    known = range(count) if axes is None else wire.constant(axes)
    places = range(wire.rank(x) - count, wire.rank(x))
    if known is not None:
        places = wire.axes([int(axis) for axis in known], wire.rank(x))
    elif axes is not None:
        x = wire.through(wire_move_axes, x, axes)
    for slot, axis in enumerate(places):
        start, end = (wire.element(bounds, slot) for bounds in (starts, ends))
        x = _sliced(wire, x, axis, start=start, end=end, step=None if steps is None else wire.element(steps, slot))
    return x if known is not None or axes is None else wire.through(wire_move_axes, x, axes, back=True)


def _lists(wire: Wiring, x: OutletId, axes: OutletId | None) -> tuple[OutletId, OutletId, OutletId | None]:
    """Starts, ends and steps: as many as axes, or for all axes of ``x`` where only a run can tell for how many."""
    starts, ends = wire.sizes(wire.input(1)), wire.sizes(wire.input(2))
    steps = None if wire.optional_input(4) is None else wire.sizes(wire.input(4))
    if axes is None and is_symbolic(wire.shape(starts).volume):
        for given in (ends, steps):
            if given is not None:
                wire.require_shape("list of ends or steps", given, wire.shape(starts))
        starts, ends = _for_all_axes(wire, x, starts, 0), _for_all_axes(wire, x, ends, np.iinfo(np.int64).max)
        steps = None if steps is None else _for_all_axes(wire, x, steps, 1)
    elif axes is not None and not is_symbolic(wire.shape(axes).volume):
        starts, ends = _as_many_as(wire, starts, axes), _as_many_as(wire, ends, axes)
        steps = None if steps is None else _as_many_as(wire, steps, axes)
    return starts, ends, steps


def _for_all_axes(wire: Wiring, x: OutletId, given: OutletId, otherwise: int) -> OutletId:
    """Parameters for the first axes of ``x``, as many as only a run can tell, and what leaves the others whole."""
    (count,) = wire.shape(given)
    others = wire.broadcast(wire.const(np.array([otherwise])), (wire.rank(x) - count,))
    return wire.op(TypedConcat(0), given, others)


def _as_many_as(wire: Wiring, given: OutletId, axes: OutletId) -> OutletId:
    """A list that must have one element for each axis, where only a run can tell how many it has."""
    return wire.reshape(given, wire.shape(axes)) if is_symbolic(wire.shape(given).volume) else given


def _sliced(wire: Wiring, x: OutletId, axis: int, *, start: OutletId, end: OutletId, step: OutletId | None) -> OutletId:
    known = np.array(1) if step is None else wire.constant(step)
    if known is None:
        assert step is not None  # without one it is known
        return _with_computed_step(wire, x, axis, start=start, end=end, step=step)
    stride = int(known)
    if stride == 0:
        raise FactError("a step of Slice is 0")
    if stride < 0:
        start = _not_before_the_first(wire, start, wire.shape(x)[axis])
    return wire.through(wire_dyn_slice, x, axis, start=start, end=end, step=stride)


def _not_before_the_first(wire: Wiring, start: OutletId, size: Dim) -> OutletId:
    """Where a slice begins that goes backwards: a start before the first element is that one, unlike in NumPy."""
    known = wire.dims(start)
    if known is None:
        return wire.op(Max(), start, wire.const(0 - size))
    if is_symbolic(known[0]) or int(known[0]) >= -1:
        return start
    return wire.const(dim_max(size + int(known[0]), 0))


def _with_computed_step(
    wire: Wiring, x: OutletId, axis: int, *, start: OutletId, end: OutletId, step: OutletId
) -> OutletId:
    """The elements gathered at their places. Backwards, the end may also stand before the first element."""
    size, zero = wire.const(wire.shape(x)[axis]), wire.const(0)
    back = wire.i64(wire.op(Lt(), step, zero))
    lowest, highest = wire.op(Sub(), zero, back), wire.op(Sub(), size, back)

    def inside(bound: OutletId, lowest: OutletId) -> OutletId:
        place = wire.select(wire.op(Lt(), bound, zero), wire.op(Add(), bound, size), bound)
        return wire.op(Min(), wire.op(Max(), place, lowest), highest)

    return wire.op(Gather(axis), x, wire.through(wire_range, inside(start, zero), inside(end, lowest), step))


@onnx_op(ROWS, "Split")
def split_1(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """The sizes are an attribute, or an input"""
    sizes = wire.optional_input(1)
    return _split_as(node, wire, sizes) if sizes is not None else _split_by_attribute(node, wire)


@onnx_op(ROWS, "Split", since=2)
def split_2(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """X in pieces of given sizes, or in equal ones"""
    return _split_by_attribute(node, wire)


def _split_by_attribute(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    return _split(node, wire, node.integers("split") if node.has("split") else None)


@onnx_op(ROWS, "Split", since=13)
def split_13(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """As before, the sizes being an input"""
    sizes = wire.optional_input(1)
    return _split(node, wire, None) if sizes is None else _split_as(node, wire, sizes)


def _split_as(node: OnnxNode, wire: Wiring, sizes: OutletId) -> Sequence[OutletId]:
    """The sizes of the pieces are an input."""
    known = wire.dims(sizes)
    return _split_computed(node, wire, wire.sizes(sizes)) if known is None else _split(node, wire, known)


def _split_computed(node: OnnxNode, wire: Wiring, sizes: OutletId) -> Sequence[OutletId]:
    """Each piece ends where the next one starts; the last one has what is left, and is announced to have that."""
    x, count = wire.input(0), wire.count(sizes, "sizes of Split")
    axis = node.axis("axis", wire.rank(x), 0)
    if count < node.output_count:
        raise CorruptModel(f"Split has {node.output_count} outputs and {count} sizes")
    if wire.rank(x) == 0:
        raise FactError("a tensor without axes cannot be split")
    left = wire.shape(x)[axis]
    outlets: list[OutletId] = []
    start = wire.const(0)
    for slot in range(count):
        end = wire.op(Add(), start, wire.element(sizes, slot))
        length = left if slot == count - 1 else wire.symbol("piece")
        outlets.append(wire.op(DynSlice(axis, length), x, start, end))
        start, left = end, left - length
    return outlets


def _split(node: OnnxNode, wire: Wiring, sizes: Sequence[Dim] | None) -> Sequence[OutletId]:
    x = wire.input(0)
    axis = node.axis("axis", wire.rank(x), 0)
    if wire.rank(x) == 0:
        raise FactError("a tensor without axes cannot be split")
    whole = wire.shape(x)[axis]
    if sizes is None:
        count = node.integer("num_outputs", node.output_count)
        sizes = _equal_pieces(whole, count) if node.has("num_outputs") else (whole // max(count, 1),) * count
    if len(sizes) < node.output_count:
        raise CorruptModel(f"Split has {node.output_count} outputs and {len(sizes)} sizes")
    if any(not is_symbolic(size) and int(size) < 0 for size in sizes) or not may_equal(sum(sizes), whole):
        raise CorruptModel(f"Split into pieces of sizes {', '.join(map(str, sizes))}, of an axis of size {whole}")
    outlets: list[OutletId] = []
    start: Dim = 0
    for size in sizes:
        outlets.append(wire.op(Slice(axis, start, start + size), x))
        start = start + size
    return outlets


def _equal_pieces(size: Dim, count: int) -> Sequence[Dim]:
    """Pieces of one size; the last one is smaller where that does not come out even."""
    if not 1 <= count <= MAX_COUNT:
        raise CorruptModel(f"Split into {count} pieces, from 1 to {MAX_COUNT} are allowed")
    even = exact_div(size, count)
    if even is not None:
        return (even,) * count
    piece = ceil_div(size, count)
    return (*(piece for _ in range(count - 1)), size - piece * (count - 1))
