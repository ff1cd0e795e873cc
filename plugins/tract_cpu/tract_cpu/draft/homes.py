"""Where a tensor had best be written, so that nobody need copy it.

That is where the output lies that is a view on it, or its part of a tensor that is put together of several.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from tract_core.dims import Dim, is_one, product
from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis, Reshape, RmAxis
from tract_core.ops.concat import TypedConcat
from tract_cpu.draft.draft import Draft
from tract_cpu.group.known import Known
from tract_cpu.program.places import Part
from tract_cpu.program.views import Storage


class Homes:
    """The storages of tensors that are about to be written."""

    def __init__(self, known: Known, draft: Draft, settled: Mapping[OutletId, Storage]) -> None:
        """``settled``: the homes that there are already."""
        self._known, self._draft, self._settled = known, draft, dict(settled)
        self._offsets: dict[int, list[Dim]] = {}
        """Where the inputs of concatenations, by their nodes, begin in the whole, if they have no gaps there."""

    def settled(self) -> dict[OutletId, Storage]:
        """The homes that there are."""
        return dict(self._settled)

    def of(self, outlet: OutletId) -> Storage:
        """The storage for a tensor that has no gaps."""
        found = self._settled.get(outlet) or self._beyond(outlet)
        if found is None:
            fact = self._known.model.outlet_fact(outlet)
            found = self._draft.room(product(fact.shape) * fact.datum_type.storage.numpy.itemsize)
        self._settled[outlet] = found
        return found

    def _beyond(self, outlet: OutletId) -> Storage | None:
        """Where the first of its readers would have it that minds; ``None`` where it can be anywhere."""
        model = self._known.model
        for reader in sorted(model.outlet(outlet).successors):
            if self._known.why_unfit(reader.node) is not None:
                continue
            op, result, found = model.nodes[reader.node].op, OutletId(reader.node), None
            if isinstance(op, AddAxis | RmAxis | Reshape):
                found = self._settled.get(result) or self._beyond(result)
            elif isinstance(op, TypedConcat):
                found = self._part(op, result, reader.slot)
            if found is not None:
                return found
        return None

    def _part(self, op: TypedConcat, result: OutletId, slot: int) -> Storage | None:
        """The part of a tensor, where that has no gaps as it lies in the whole."""
        model = self._known.model
        inputs = model.nodes[result.node].inputs
        fact = model.outlet_fact(inputs[slot])
        if not all(is_one(size) for size in fact.shape[: op.axis]):
            return None
        offsets = self._offsets.get(result.node)
        if offsets is None:
            shapes = [model.outlet_fact(outlet).shape for outlet in inputs]
            sizes = [product(shape[op.axis :]) for shape in shapes]
            offsets = self._offsets[result.node] = list(accumulate(sizes, initial=0))
        part = Part(self.of(result), offsets[slot], fact.datum_type.storage.numpy.itemsize)
        return self._draft.part(part)
