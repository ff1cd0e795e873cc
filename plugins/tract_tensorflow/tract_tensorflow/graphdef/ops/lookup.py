"""Tables of keys and values. The keys and the values of a table come behind the other inputs."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring
from tract_tensorflow.table_wiring import wire_look_up

ROWS = Rows()


@tf_op(ROWS, "LookupTableFind", "LookupTableFindV2")
def look_up(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The value behind each element; a default for what is no key"""
    keys, values = (wire.known(wire.input(slot), "what a table holds") for slot in (2, 3))
    return wire_look_up(wire, wire.input(0), wire.number(wire.input(1)), keys, values)


@tf_op(ROWS, "LookupTableSize", "LookupTableSizeV2")
def size(node: GraphNode, wire: GraphWiring) -> OutletId:
    """How many keys there are"""
    return wire.cast(wire.const(wire.shape(wire.input(0))[0]), DatumType.I64)
