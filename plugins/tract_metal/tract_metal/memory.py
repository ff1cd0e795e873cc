"""How much memory a segment takes, told before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tract_core.compile.groups import given_by
from tract_core.compile.lifetimes import read_by
from tract_core.dims import evaluate
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_metal.segments import Segment


def most_bytes(model: TypedModel, segment: Segment, symbols: Mapping[str, int]) -> int:
    """Bytes of the tensors of a segment that are there at the same time, at most, in the order of its groups.

    MLX may compute in another order, and an operator may take more on the way to its result.
    """
    last: dict[OutletId, int] = {}
    for place, group in enumerate(segment.groups):
        last |= dict.fromkeys((*read_by(model, group.nodes), *given_by(model, group.nodes)), place)
    dying: list[list[OutletId]] = [[] for _ in segment.groups]
    for outlet in last.keys() - segment.gives:
        dying[last[outlet]].append(outlet)
    held, here, most = dict[OutletId, int](), 0, 0
    for group, ends in zip(segment.groups, dying, strict=True):
        for outlet in given_by(model, group.nodes):
            held[outlet] = _bytes(model, outlet, symbols)
            here += held[outlet]
        most = max(most, here)
        here -= sum(held.pop(outlet, 0) for outlet in ends)
    return most


def _bytes(model: TypedModel, outlet: OutletId, symbols: Mapping[str, int]) -> int:
    fact = model.outlet_fact(outlet)
    return prod(evaluate(size, symbols) for size in fact.shape) * fact.datum_type.itemsize
