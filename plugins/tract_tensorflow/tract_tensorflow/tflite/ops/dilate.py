"""Elements put between those of a tensor."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.pad import PadConstant
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_dyn_pad
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "DILATE")
def dilate(node: TfliteNode, wire: Wiring) -> Wired:
    """Each axis with copies of an element between its own, so that these stand so far apart"""
    x, distances = wire.tensor(0), wire.known_ints(wire.input(1), "the distances of DILATE")
    if len(distances) != x.rank or min(distances, default=1) < 1:
        raise CorruptModel(f"distances {list(distances)} are given for {x.fact}")
    return spread(x, distances, wire.number(wire.input(2)))


def spread(x: Wired, distances: tuple[int, ...], value: OutletId) -> Wired:
    """A tensor with its elements so far apart on each axis, and ``value`` between them."""
    for axis, distance in enumerate(distances):
        if distance > 1:
            x = _spread(x, axis, distance, value)
    return x


def _spread(x: Wired, axis: int, distance: int, value: OutletId) -> Wired:
    """Each element gets an axis of its own, which is filled up; both axes become one, without its end."""
    size: Dim = x.shape[axis]
    longer = x.unsqueeze([axis + 1])
    flat = [0] * (2 * longer.rank)
    flat[longer.rank + axis + 1] = distance - 1
    zero = PadConstant(Constant(np.zeros((), x.dtype.numpy)))
    filled = longer.through(wire_dyn_pad, x.wire.const(flat), zero, value=value)
    joined = filled.reshape((*x.shape[:axis], size * distance, *x.shape[axis + 1 :]))
    return joined.part(axis, 0, (size - 1) * distance + 1) if size != 0 else joined
