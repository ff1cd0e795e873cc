"""Where a tensor had best be written, so that nobody need copy it.

That is where the output lies that is a view on it, or its part of a tensor that is put together of several.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from tract_core.dims import Dim, is_one, product
from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis, Reshape, RmAxis
from tract_core.ops.concat import TypedConcat
from tract_cpu.program.places import Part
from tract_cpu.program.views import Storage

if TYPE_CHECKING:
    from tract_cpu.draft.lowering import Lowering


class Homes:
    """The storages of tensors that are about to be written."""

    def __init__(self, lowering: Lowering, known: Mapping[OutletId, Storage]) -> None:
        """``known``: the homes that are settled."""
        self._lowering = lowering
        self._known = dict(known)
        self._offsets: dict[int, list[Dim]] = {}
        """Where the inputs of concatenations, by their nodes, begin in the whole, if they have no gaps there."""

    def known(self) -> dict[OutletId, Storage]:
        """The homes that are settled."""
        return dict(self._known)

    def of(self, outlet: OutletId) -> Storage:
        """The storage for a tensor that has no gaps."""
        found = self._known.get(outlet) or self._beyond(outlet)
        if found is None:
            fact = self._lowering.model.outlet_fact(outlet)
            found = self._lowering.room(product(fact.shape) * fact.datum_type.storage.numpy.itemsize)
        self._known[outlet] = found
        return found

    def _beyond(self, outlet: OutletId) -> Storage | None:
        """Where the first of its readers would have it that minds; ``None`` where it can be anywhere."""
        model = self._lowering.model
        for reader in sorted(model.outlet(outlet).successors):
            if self._lowering.why_unfit(reader.node) is not None:
                continue
            op, result, found = model.nodes[reader.node].op, OutletId(reader.node), None
            if isinstance(op, AddAxis | RmAxis | Reshape):
                found = self._known.get(result) or self._beyond(result)
            elif isinstance(op, TypedConcat):
                found = self._part(op, result, reader.slot)
            if found is not None:
                return found
        return None

    def _part(self, op: TypedConcat, result: OutletId, slot: int) -> Storage | None:
        """The part of a tensor, where that has no gaps as it lies in the whole."""
        model = self._lowering.model
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
        return self._lowering.part(part)
