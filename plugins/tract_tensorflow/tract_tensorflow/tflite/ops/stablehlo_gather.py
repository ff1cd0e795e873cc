"""Operators of StableHLO that take slices from places that a tensor names, or write them there.

Source: the specification of StableHLO.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.dims import Dim
from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.ops.gather import GatherNd
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scatter import Reduction, ScatterNd
from tract_core.ops.slice import DynSlice
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.bodies import REPLACED, joining
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.ops.slice import written_at
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "STABLEHLO_DYNAMIC_SLICE")
def dynamic_slice(node: TfliteNode, wire: Wiring) -> Wired:
    """So many elements of each axis, from a place on that is moved as far as there are as many"""
    x = wire.tensor(0)
    for axis, (size, place) in enumerate(zip(node.each("slice_sizes", x.rank), _places(wire, x, 1), strict=True)):
        start = place.minimum(Wired(wire, wire.const(x.shape[axis] - size))).maximum(0)
        x = x.op(DynSlice(axis, size), start, start + Wired(wire, wire.const(size)))
    return x


@tflite_op(ROWS, "STABLEHLO_DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(node: TfliteNode, wire: Wiring) -> Wired:
    """With a tensor written over it, from a place on that is moved as far as it has room"""
    x, update = wire.tensor(0), wire.tensor(1)
    return written_at(wire, x, update, _places(wire, x, 2))


def _places(wire: Wiring, x: Wired, first: int) -> list[Wired]:
    """A place on each axis, each an input of its own."""
    if len(wire.slots) != first + x.rank:
        raise CorruptModel(f"{len(wire.slots) - first} places are given for {x.fact}")
    return [Wired(wire, wire.i64(wire.number(wire.input(first + axis)))) for axis in range(x.rank)]


@tflite_op(ROWS, "STABLEHLO_GATHER")
def gather(node: TfliteNode, wire: Wiring) -> Wired:
    """Slices of fixed sizes, from places that the second input names, moved to where the slice is inside"""
    x, places = wire.tensor(0), _vectors(node, wire.tensor(1))
    sizes = node.each("slice_sizes", x.rank)
    named = node.axes("start_index_map", x.rank, ())
    collapsed = node.axes("collapsed_slice_dims", x.rank, ())
    others = [axis for axis in range(x.rank) if axis not in named]
    for axis in others:
        x = x.part(axis, 0, sizes[axis])
    starts = {
        axis: _column(places, column).minimum(Wired(wire, wire.const(x.shape[axis] - sizes[axis]))).maximum(0)
        for column, axis in enumerate(named)
    }
    found = x.transpose((*named, *others)).op(GatherNd(0), _grid(wire, starts, [sizes[axis] for axis in named]))
    batch = places.rank - 1
    axes = [*named, *others]
    found = found.squeeze([batch + axes.index(axis) for axis in collapsed])
    return found.transpose(_from_front(node, batch, [axis for axis in axes if axis not in collapsed]))


def _from_front(node: TfliteNode, batch: int, kept: Sequence[int]) -> list[int]:
    """The order of axes that brings those of slices, ``kept`` in this order, to where the output has them."""
    rank = batch + len(kept)
    offsets = node.axes("offset_dims", rank, ())
    if len(offsets) != len(kept):
        raise node.misfit("offset_dims", f"names {len(offsets)} axes", f"{len(kept)}")
    fronts = iter(range(batch))
    windows = dict(zip(sorted(offsets), sorted(kept), strict=True))
    return [batch + kept.index(windows[axis]) if axis in windows else next(fronts) for axis in range(rank)]


def _vectors(node: TfliteNode, places: Wired) -> Wired:
    """Places as i64, with their coordinates on the last axis."""
    at = node.integer("index_vector_dim", 0)
    if not 0 <= at <= places.rank:
        raise node.misfit("index_vector_dim", f"is {at}", f"0 to {places.rank}")
    places = Wired(places.wire, places.wire.i64(places.outlet))
    if at == places.rank:
        return places.unsqueeze([at])
    return places.transpose((*(axis for axis in range(places.rank) if axis != at), at))


def _column(places: Wired, column: int) -> Wired:
    return places[..., column]


def _grid(wire: Wiring, starts: dict[int, Wired], sizes: Sequence[Dim]) -> Wired:
    """The coordinates of every element of every slice: (places, sizes, coordinates)."""
    columns: list[Wired] = []
    for number, (start, size) in enumerate(zip(starts.values(), sizes, strict=True)):
        offsets = Wired(wire, wire.through(wire_range, wire.const(0), wire.const(size), wire.const(1)))
        rank = start.rank + len(sizes)
        offsets = offsets.unsqueeze([axis for axis in range(rank) if axis != start.rank + number])
        each = start.unsqueeze(range(start.rank, rank)) + offsets
        columns.append(each.broadcast((*start.shape, *sizes)).unsqueeze([rank]))
    return columns[0].concat(columns[1:], columns[0].rank - 1)


_REDUCTIONS: Final[dict[str, Reduction]] = {
    REPLACED: "none",
    "ADD": "add",
    "MAXIMUM": "max",
    "MINIMUM": "min",
    "MULTIPLY": "mul",
    "MUL": "mul",
}


@tflite_op(ROWS, "STABLEHLO_SCATTER")
def scatter(node: TfliteNode, wire: Wiring) -> Wired:
    """Slices written to places, or joined with what is there; what lies outside is dropped"""
    x, updates = wire.tensor(0), wire.tensor(2)
    if len(wire.slots) != 3:
        raise Unsupported(f"STABLEHLO_SCATTER of {len(wire.slots) // 2} tensors at once")
    places = _vectors(node, wire.tensor(1))
    word = joining(node, "update_computation_subgraph_index")
    if word not in _REDUCTIONS:
        raise Unsupported(f"STABLEHLO_SCATTER by {word}")
    windows = node.axes("update_window_dims", updates.rank, ())
    inserted = node.axes("inserted_window_dims", x.rank, ())
    kept = [axis for axis in range(x.rank) if axis not in inserted]
    if len(kept) != len(windows) or places.rank - 1 != updates.rank - len(windows):
        raise CorruptModel(f"STABLEHLO_SCATTER of {updates.fact} into {x.fact} at {places.fact}")
    sizes: dict[int, Dim] = dict.fromkeys(inserted, 1)
    sizes |= {axis: updates.shape[window] for axis, window in zip(kept, sorted(windows), strict=True)}
    return _scattered(
        wire, x, places, updates, _Slices(tuple(windows), tuple(kept), sizes), reduction=_REDUCTIONS[word]
    )


@frozen
class _Slices:
    """Slices in updates: which of their axes are those of slices, of which axes of the tensor, of which sizes."""

    windows: tuple[int, ...]
    kept: tuple[int, ...]
    sizes: dict[int, Dim]


def _scattered(
    wire: Wiring, x: Wired, places: Wired, updates: Wired, slices: _Slices, *, reduction: Reduction
) -> Wired:
    sizes = slices.sizes
    named = wire.node.axes("scatter_dims_to_operand_dims", x.rank, ())
    axes = sorted({*named, *(axis for axis in range(x.rank) if sizes[axis] != x.shape[axis])})
    others = [axis for axis in range(x.rank) if axis not in axes]
    if not axes:
        raise Unsupported("STABLEHLO_SCATTER without axes that places name")
    starts = {axis: _column(places, named.index(axis)) if axis in named else _zeros(places) for axis in axes}
    grid = _grid(wire, starts, [sizes[axis] for axis in axes])
    limits = Wired(wire, wire.const(tuple(x.shape[axis] for axis in axes)))
    limits = limits.unsqueeze(range(grid.rank - 1))
    last = grid.rank - 1
    fits = ((grid >= 0) & (grid < limits)).op(Reduce((last,), Reducer.ALL))
    # What lies outside goes behind the end of the first axis, which is cut off again.
    first = axes[0]
    behind = limits * Wired(wire, wire.const([int(axis == first) for axis in axes])).unsqueeze(range(last))
    room = x.like(0).broadcast([1 if axis == first else size for axis, size in enumerate(x.shape)])
    longer = x.concat([room], first).transpose((*axes, *others))
    arranged = _arranged(updates, slices, axes, others)
    written = longer.op(ScatterNd(reduction), fits.where(grid, behind), arranged)
    back = [[*axes, *others].index(axis) for axis in range(x.rank)]
    return written.transpose(back).part(first, 0, x.shape[first])


def _arranged(updates: Wired, slices: _Slices, axes: Sequence[int], others: Sequence[int]) -> Wired:
    """Updates as (places, all axes of slices in the order that they are written in)."""
    fronts = [axis for axis in range(updates.rank) if axis not in slices.windows]
    by_axis = dict(zip(slices.kept, sorted(slices.windows), strict=True))
    order = [axis for axis in (*axes, *others) if axis in by_axis]
    moved = updates.transpose((*fronts, *(by_axis[axis] for axis in order)))
    missing = [len(fronts) + place for place, axis in enumerate((*axes, *others)) if axis not in by_axis]
    return moved.unsqueeze(missing)


def _zeros(places: Wired) -> Wired:
    return places[..., 0] * 0
