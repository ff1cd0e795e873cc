"""Sequences of different lengths, reversed: wired of other operators, for all frontends."""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Lt, Sub
from tract_core.ops.gather import GatherElements
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wiring_dyn import wire_range


def wire_reverse_sequence(wire: NodeWiring, x: OutletId, lengths: OutletId, *, time: int, batch: int) -> OutletId:
    """The first elements of each item, as many as its length says, the other way round; the rest stays in place.

    ``lengths``: 64-bit integers, one per item. ``time``, ``batch``: the axes of elements and of items, counted from the
    front. Raises FactError.
    """
    rank, shape = wire.rank(x), wire.shape(x)
    if not rank or wire.rank(lengths) != 1:
        raise FactError(f"one length per item is wanted, found {wire.fact(lengths)}")
    wire.require_shape("list of lengths", lengths, (shape[batch],))
    places = wire.through(wire_range, wire.const(0), wire.const(shape[time]), wire.const(1))
    places = wire.unsqueeze(places, [axis for axis in range(rank) if axis != time])
    lengths = wire.unsqueeze(lengths, [axis for axis in range(rank) if axis != batch])
    last = wire.binary(Sub(), lengths, wire.const(1))
    mirrored = wire.op(Sub(), last, places)
    source = wire.select(wire.op(Lt(), places, lengths), mirrored, places)
    return wire.op(GatherElements(time), x, wire.broadcast(source, shape))
