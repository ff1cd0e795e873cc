"""Rows of tables, found by keys, and sums of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.ops.gather import Gather
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scatter import ScatterNd
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_expand
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "HASHTABLE_LOOKUP")
def hashtable_lookup(node: TfliteNode, wire: Wiring) -> Sequence[Wired]:
    """The row behind each key, zeros where there is none; and whether there is one"""
    wanted, keys, rows = (wire.tensor(slot) for slot in range(3))
    if wanted.rank != 1 or keys.rank != 1 or not rows.rank:
        raise FactError(f"lists of keys are wanted, found {wanted.fact} and {keys.fact} for {rows.fact}")
    is_it = wanted.unsqueeze([1]).eq(keys.unsqueeze([0]))
    hits = is_it.op(Reduce((1,), Reducer.ANY)).squeeze([1])
    places = is_it.cast(DatumType.I32).argmax([1]).squeeze([1])
    found = rows.op(Gather(0), places)
    return hits.unsqueeze(range(1, rows.rank)).where(found, 0), hits.cast(DatumType.U8)


@tflite_op(ROWS, "EMBEDDING_LOOKUP_SPARSE")
def embedding_lookup_sparse(node: TfliteNode, wire: Wiring) -> Wired:
    """Rows of a table times weights, added up where the coordinates say; then divided as the combiner says

    Inputs: numbers of rows; coordinates, the last of which only tells rows of one sum apart; the sizes of these axes;
    weights; the table.
    """
    numbers, places, sizes, weights, table = (wire.tensor(slot) for slot in range(5))
    if places.rank != 2 or sizes.rank != 1 or table.rank < 1:
        raise FactError(f"coordinates {places.fact} of axes {sizes.fact} and a table {table.fact} do not go together")
    depth = wire.count(sizes.outlet, "sizes") - 1
    outer = Wired(wire, wire.sizes(sizes.outlet)).part(0, 0, depth)
    at = places.part(1, 0, depth)
    rows = table.op(Gather(0), numbers)
    factors = weights.unsqueeze(range(1, rows.rank))
    total = _added(wire, rows * factors, at, outer)
    combiner = node.choice("combiner", ("SUM", "MEAN", "SQRTN"), "SUM")
    if combiner == "SUM":
        return total
    squares = combiner == "SQRTN"
    divisor = _added(wire, factors.square() if squares else factors, at, outer)
    divisor = divisor.sqrt() if squares else divisor
    return total / divisor.eq(0).where(1, divisor)


def _added(wire: Wiring, updates: Wired, places: Wired, outer: Wired) -> Wired:
    """Slices added to zeros: the outer axes as given, the others those of the slices."""
    inner = Wired(wire, wire.const(tuple(updates.shape[1:])))
    zero = Wired(wire, wire.const(np.zeros((), updates.dtype.numpy)))
    return zero.through(wire_expand, outer.concat([inner], 0).outlet).op(ScatterNd("add"), places, updates)
