"""Numbers in sequence."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Range")
def number_range(node: GraphNode, wire: GraphWiring) -> OutletId:
    """``start``, ``start + delta``, ... up to and without ``limit``"""
    start, limit, delta = (wire.number(wire.input(slot)) for slot in range(3))
    kinds = {wire.dtype(x) for x in (start, limit, delta)}
    if len(kinds) > 1 or not all(kind.is_number() and not kind.is_complex() for kind in kinds):
        found = ", ".join(str(wire.fact(x)) for x in (start, limit, delta))
        raise FactError(f"Range wants real numbers of one type, found {found}")
    return wire.through(wire_range, start, limit, delta)


@tf_op(ROWS, "LinSpace")
def lin_space(node: GraphNode, wire: GraphWiring) -> Wired:
    """As many numbers as the third input says, from the first to the second, at equal distances"""
    start, stop = (Wired(wire, wire.number(wire.input(slot))) for slot in range(2))
    count = wire.i64(wire.number(wire.input(2)))
    places = Wired(wire, wire.through(wire_range, wire.const(0), count, wire.const(1)))
    last = Wired(wire, count) - 1
    step = (stop - start) / last.maximum(1).cast(start.dtype)
    values = start + places.cast(start.dtype) * step
    is_last = places.eq(last) & (last > 0)
    return is_last.where(stop.unsqueeze([0]), values).cast(start.dtype if start.dtype.is_float() else DatumType.F32)
