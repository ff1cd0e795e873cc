"""Elements written to places that a tensor names."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.scatter import ScatterNd
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_expand
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "SCATTER_ND")
def scatter_nd(node: TfliteNode, wire: Wiring) -> Wired:
    """Zeros in a shape, to which slices are added at the coordinates in the last axis of the first input"""
    places, updates, shape = wire.tensor(0), wire.tensor(1), wire.sizes(wire.input(2))
    if updates.dtype.is_bool():
        found = _added(wire, places, updates.cast(DatumType.I32), shape)
        return found.ne(0)
    return _added(wire, places, updates, shape)


def _added(wire: Wiring, places: Wired, updates: Wired, shape: OutletId) -> Wired:
    zeros = updates.like(0).reshape(()).through(wire_expand, shape)
    return zeros.op(ScatterNd("add"), places, updates)


@quantized_op(ROWS, "SPARSE_TO_DENSE")
@tflite_op(ROWS, "SPARSE_TO_DENSE")
def sparse_to_dense(node: TfliteNode, wire: Wiring) -> Wired:
    """A tensor of one value, in a shape, with others at some places: one for all of them, or one for each"""
    places, values, default = wire.tensor(0), wire.tensor(2), wire.tensor(3)
    if places.rank > 2:
        raise CorruptModel(f"places are given as {places.fact}, wanted at most two axes")
    if places.rank == 0:
        places = places.unsqueeze([0])
    if places.rank == 1:
        places = places.unsqueeze([1])
    filled = default.reshape(()).through(wire_expand, wire.sizes(wire.input(1)))
    each = values.broadcast((places.shape[0],)) if values.rank == 0 else values
    return filled.op(ScatterNd(), places, each)
