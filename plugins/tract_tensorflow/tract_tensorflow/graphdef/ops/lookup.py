"""Tables of keys and values. The keys and the values of a table come behind the other inputs."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.gather import Gather
from tract_core.ops.lookup import Lookup
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "LookupTableFind", "LookupTableFindV2")
def look_up(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The value behind each element; a default for what is no key"""
    x, default = wire.input(0), wire.number(wire.input(1))
    keys, values = wire.known(wire.input(2), "the keys of a table"), wire.known(wire.input(3), "the values of a table")
    if wire.dtype(x) is not wire.dtype(wire.input(2)) or wire.dtype(default) is not wire.dtype(wire.input(3)):
        table = f"{wire.fact(wire.input(2))} and {wire.fact(wire.input(3))}"
        raise FactError(f"a table of {table} is asked for {wire.fact(x)}, or {wire.fact(default)}")
    other, places = wire.constant(default), np.arange(len(keys))
    if other is not None and values.dtype == places.dtype and np.array_equal(values, places):
        return wire.op(Lookup(Constant(keys), Constant(values), Constant(other)), x)
    # The place of a key, and behind all of them the default.
    place = wire.op(Lookup(Constant(keys), Constant(places), Constant(np.array(len(keys)))), x)
    table = wire.op(TypedConcat(0), wire.input(3), wire.unsqueeze(default, [0]))
    return wire.op(Gather(0), table, place)


@tf_op(ROWS, "LookupTableSize", "LookupTableSizeV2")
def size(node: GraphNode, wire: GraphWiring) -> OutletId:
    """How many keys there are"""
    return wire.cast(wire.const(wire.shape(wire.input(0))[0]), DatumType.I64)
