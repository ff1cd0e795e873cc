"""Positions as vectors of zeros with a one."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_one_hot
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "OneHot")
def one_hot(node: GraphNode, wire: GraphWiring) -> OutletId:
    """A new axis: the third input at the place that the first names, else the fourth; a place outside is nowhere"""
    places, depth = wire.tensor(0).cast(DatumType.I64), wire.number(wire.i64(wire.input(1)))
    axis = node.axis("axis", places.rank + 1, -1)
    # A place below 0 would count from the end: one behind the end is nowhere too.
    places = (places < 0).where(Wired(wire, depth), places)
    values = wire.number(wire.input(3)), wire.number(wire.input(2))
    known = [wire.constant(value) for value in values]
    if known[0] is not None and known[1] is not None:
        off, on = Constant(known[0]), Constant(known[1])
        return wire.through(wire_one_hot, places.outlet, depth, axis=axis, off=off, on=on)
    off, on = Constant(np.array(False)), Constant(np.array(True))
    hot = wire.through(wire_one_hot, places.outlet, depth, axis=axis, off=off, on=on)
    return wire.select(hot, values[1], values[0])
