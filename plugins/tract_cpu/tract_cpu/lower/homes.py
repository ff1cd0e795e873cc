"""Where a tensor had best be written, so that nobody need copy it.

That is where the output lies that is a view on it, or its part of a tensor that is put together of several. A part is a
storage of its own while the program is made. When that is done, every mention of a part becomes a place in the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tract_core.dims import Dim, is_one, product
from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis, Reshape, RmAxis
from tract_core.ops.concat import TypedConcat
from tract_cpu.lower.program import HostStep, NativeStep, Step
from tract_cpu.lower.views import Address, Kind, Storage, View

if TYPE_CHECKING:
    from tract_cpu.lower.lowering import Lowering


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of a tensor, from ``offset`` on, counted in elements, of ``bytes`` each."""

    whole: Storage
    offset: Dim
    bytes: int


class Homes:
    """The storages of tensors that are about to be written."""

    def __init__(self, lowering: Lowering) -> None:
        self._lowering = lowering
        outputs = enumerate(lowering.model.outputs)
        self._known = {outlet: Storage(Kind.OUTPUT, number) for number, outlet in reversed(list(outputs))}
        self._parts: dict[Storage, Part] = {}

    def of(self, outlet: OutletId) -> Storage:
        """The storage for a tensor that has no gaps."""
        found = self._known.get(outlet) or self._beyond(outlet)
        if found is None:
            fact = self._lowering.model.outlet_fact(outlet)
            found = self._lowering.room(product(fact.shape) * fact.datum_type.storage.numpy.itemsize)
        self._known[outlet] = found
        return found

    def is_there(self, view: View, place: View) -> bool:
        """Whether a tensor lies where it would have to be copied to, both without gaps."""
        if view.storage not in self._parts or not view.is_contiguous:
            return False
        here, there = self._address(view.address), self._address(place.address)
        return here == there

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
        facts = [model.outlet_fact(outlet) for outlet in model.nodes[result.node].inputs]
        if not all(is_one(size) for size in facts[slot].shape[: op.axis]):
            return None
        offset: Dim = 0
        for fact in facts[:slot]:
            offset = offset + product(fact.shape[op.axis :])
        part = self._lowering.room(0)
        self._parts[part] = Part(self.of(result), offset, facts[slot].datum_type.storage.numpy.itemsize)
        return part

    # ---- when the program is done

    def step(self, step: Step) -> Step:
        """A step, with places in wholes instead of parts."""
        if isinstance(step, NativeStep):
            arguments = tuple(self._address(one) if isinstance(one, Address) else one for one in step.arguments)
            step = replace(step, arguments=arguments)
        elif isinstance(step, HostStep):
            return replace(step, inputs=tuple(self.view(view) for view in step.inputs))
        return replace(step, results=tuple(self._root(one)[0] for one in step.results))

    def view(self, view: View | None) -> View | None:
        """A tensor, in the whole instead of the part."""
        if view is None or view.storage not in self._parts:
            return view
        storage, offset, _ = self._root(view.storage)
        return replace(view, storage=storage, offset=view.offset + offset)

    def views(self, views: Mapping[OutletId, View | None]) -> dict[OutletId, View | None]:
        """Tensors, in wholes instead of parts."""
        return {outlet: self.view(view) for outlet, view in views.items()}

    def _address(self, address: Address) -> Address:
        storage, offset, size = self._root(address.storage)
        return Address(storage, address.offset + offset * size)

    def _root(self, storage: Storage) -> tuple[Storage, Dim, int]:
        offset: Dim = 0
        size = 0
        while storage in self._parts:
            part = self._parts[storage]
            storage, offset, size = part.whole, offset + part.offset, part.bytes
        return storage, offset, size
