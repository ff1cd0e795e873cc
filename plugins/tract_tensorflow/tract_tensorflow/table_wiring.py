"""Tables of keys and values: what stands behind each element of a tensor."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.gather import Gather
from tract_core.ops.lookup import Lookup
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.keys import Array


def wire_look_up(wire: NodeWiring, x: OutletId, default: OutletId, keys: Array, values: Array) -> OutletId:
    """For each element of ``x`` the value behind the key that it is; ``default``, of no axes, for what is no key.

    ``keys``, ``values``: on one axis; of equal keys the last counts. Raises FactError for types that do not fit.
    """
    table = Constant(keys), Constant(values)
    if (wire.dtype(x), wire.dtype(default)) != (table[0].datum_type, table[1].datum_type):
        said = " and ".join(f"{len(one.array)},{one.datum_type.short}" for one in table)
        raise FactError(f"a table of {said} is asked for {wire.fact(x)}, or {wire.fact(default)}")
    other, places = wire.constant(default), np.arange(len(keys))
    if other is not None and values.dtype == places.dtype and np.array_equal(values, places):
        return wire.op(Lookup(*table, Constant(other)), x)
    # The place of a key, and behind all of them the default.
    place = wire.op(Lookup(table[0], Constant(places), Constant(np.array(len(places)))), x)
    return wire.op(Gather(0), wire.op(TypedConcat(0), wire.const(values), wire.unsqueeze(default, [0])), place)
