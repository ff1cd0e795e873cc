"""Tensors one after the other: each is copied to its place, if it was not written there at once."""

from __future__ import annotations

from tract_core.dims import Dim
from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_cpu.blocks.blocked import only_blocked
from tract_cpu.blocks.wholes import forms_of_inputs, joined, whole_for
from tract_cpu.draft.lowering import MOVES, Site
from tract_cpu.elements.copies import copy_step
from tract_cpu.program.form import Blocked
from tract_cpu.program.program import NativeStep, ViewStep

ROWS = Rows()


@ROWS.row(MOVES, TypedConcat)
def lower_concat(op: TypedConcat, site: Site) -> str | None:
    """A copy for every input that lies elsewhere; in blocks of channels where inputs are there so only."""
    if _lower_blocked(op, site):
        return None
    inputs = site.known_inputs()
    result = site.lowering.new(site.outlet)
    start: Dim = 0
    steps: list[NativeStep] = []
    for x in inputs:
        size = x.shape[op.axis]
        place = result.part(op.axis, start, size)
        if not site.lowering.places.is_same(x, place):
            steps.append(copy_step(x, place, site.isa, ()))
        start = start + size
    if steps:
        site.add_all(steps)
    else:
        site.place(result)
    return None


def _lower_blocked(op: TypedConcat, site: Site) -> bool:
    """Put the inputs together in blocks, where one of them is there so only; otherwise do nothing."""
    lowering, outlet = site.lowering, site.outlet
    blocked = [only_blocked(lowering, one) for one in site.node.inputs]
    if not any(one is not None and one.form.axis == op.axis for one in blocked):
        return False
    whole, steps = joined(lowering, outlet), list[NativeStep]()
    if whole is None:
        whole = whole_for(lowering, outlet)
        if whole is None:
            return False
        steps = _copies(site, whole)
    lowering.blocked[outlet] = lowering.born_in_blocks[outlet] = whole
    if steps:
        site.add_all(steps)
    else:
        lowering.steps.append(ViewStep((site.node.node,), (whole.view.storage,)))
    return True


def _copies(site: Site, whole: Blocked) -> list[NativeStep]:
    """The calls that bring inputs to their parts of the whole which are not there already."""
    lowering, steps = site.lowering, list[NativeStep]()
    forms = forms_of_inputs(lowering, site.outlet)
    assert forms is not None  # there is a whole
    for slot, (outlet, form) in enumerate(zip(site.node.inputs, forms.parts, strict=True)):
        part, born = forms.part_of(whole, slot), lowering.born_in_blocks.get(outlet)
        there = lowering.blocked.get(outlet)
        if born is not None and born.view == part:
            continue
        pairs = [(part, there.view)] if there is not None and there.form == form else []
        plain = None if pairs else lowering.view(outlet)
        if plain is not None:
            pairs = form.parts(part, plain)
        steps += [copy_step(out_of, into, site.isa, ()) for into, out_of in pairs]
    return steps
