"""What must hold of a layout: each tensor has a place, in one that reads it there, and that is no part of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tract_core.compile.groups import given_by, outlet_text
from tract_core.model.graph import InletId, OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AxisOp
from tract_core.ops.concat import TypedConcat
from tract_core.ops.pad import Pad
from tract_cpu.group.groups import CpuGroup
from tract_cpu.lay_out.layout import Inside, Layout, Own, PartOf, Placement, SameAs, WantedOutput


def check_layout(model: TypedModel, groups: Sequence[CpuGroup], layout: Layout) -> None:
    """Raises AssertionError with all that is wrong with a layout."""
    found = list(faults(model, groups, layout))
    if found:
        raise AssertionError("\n".join(found))


def faults(model: TypedModel, groups: Sequence[CpuGroup], layout: Layout) -> Iterator[str]:
    """What is wrong with the layout of groups, a sentence each; nothing if all is well."""
    for number, group in enumerate(groups):
        for outlet in given_by(model, group.nodes):
            places = layout.plain if group.form is None else layout.blocks
            if outlet not in places:
                yield f"group {number} gives {outlet_text(model, outlet)}, which has no place"
    for places in (layout.plain, layout.blocks):
        for outlet, place in places.items():
            yield from (f"{outlet_text(model, outlet)} {what}" for what in _faults_of(model, outlet, place))
            if _leads_back(places, outlet):
                yield f"{outlet_text(model, outlet)} is a part of itself"
    for outlet, place in layout.blocks.items():
        if isinstance(place, Own) and len(place.border) != model.outlet_fact(outlet).rank + 1:
            yield f"{outlet_text(model, outlet)} has zeros around {len(place.border)} axes, and one more than its rank"
    for outlet, place in layout.plain.items():
        if isinstance(place, Own) and len(place.border) not in {0, model.outlet_fact(outlet).rank}:
            yield f"{outlet_text(model, outlet)} has zeros around {len(place.border)} axes, and is plain"


def _faults_of(model: TypedModel, outlet: OutletId, place: Placement) -> Iterator[str]:
    if isinstance(place, WantedOutput):
        if place.number >= len(model.outputs) or model.outputs[place.number] != outlet:
            yield f"is not output {place.number}, where it is written"
    elif isinstance(place, PartOf):
        yield from _reader(model, outlet, place.whole, TypedConcat, place.slot)
    elif isinstance(place, Inside):
        yield from _reader(model, outlet, place.whole, Pad, 0)
    elif isinstance(place, SameAs):
        yield from _reader(model, outlet, place.view, AxisOp, 0)


def _reader(model: TypedModel, outlet: OutletId, by: OutletId, kind: type, slot: int) -> Iterator[str]:
    """A tensor is written where another one is that a node of some kind makes of it."""
    node = model.nodes[by.node]
    if not isinstance(node.op, kind) or InletId(by.node, slot) not in model.outlet(outlet).successors:
        yield f"is written where {outlet_text(model, by)} is, which does not read it there"


def _leads_back(places: Mapping[OutletId, Placement], outlet: OutletId) -> bool:
    seen, now = set[OutletId](), outlet
    while now in places and now not in seen:
        seen.add(now)
        place = places[now]
        if isinstance(place, PartOf | Inside):
            now = place.whole
        elif isinstance(place, SameAs):
            now = place.view
        else:
            return False
    return now in seen
