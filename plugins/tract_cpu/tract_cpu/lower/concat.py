"""Tensors one after the other: each is copied to its place, if it was not written there at once."""

from __future__ import annotations

from tract_core.dims import Dim
from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_cpu.draft.copies import copy_step
from tract_cpu.draft.lowering import Site
from tract_cpu.group.forms import forms_of_inputs
from tract_cpu.place.blocked import in_blocks
from tract_cpu.place.wholes import joined, whole_for
from tract_cpu.program.form import Blocked, Forms
from tract_cpu.program.program import NativeStep, ViewStep
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, TypedConcat)
def lower_concat(op: TypedConcat, site: Site) -> str | None:
    """A copy for every input that lies elsewhere; in blocks of channels where inputs are there so only."""
    if site.group.form is not None:
        _lower_blocked(site)
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


def _lower_blocked(site: Site) -> None:
    """Put the inputs together in blocks."""
    lowering, outlet = site.lowering, site.outlet
    forms = forms_of_inputs(lowering, outlet)
    assert forms is not None  # it was looked at when groups were decided on
    whole, steps = joined(lowering, outlet), list[NativeStep]()
    if whole is None:
        whole = whole_for(lowering, outlet, forms.whole)
        steps = _copies(site, whole, forms)
    lowering.blocked[outlet] = lowering.born_in_blocks[outlet] = whole
    if steps:
        site.add_all(steps)
    else:
        lowering.steps.append(ViewStep((site.node.node,), (whole.view.storage,)))


def _copies(site: Site, whole: Blocked, forms: Forms) -> list[NativeStep]:
    """The calls that bring inputs to their parts of the whole which are not there already."""
    lowering, steps = site.lowering, list[NativeStep]()
    for slot, (outlet, form) in enumerate(zip(site.node.inputs, forms.parts, strict=True)):
        part, born = forms.part_of(whole, slot), lowering.born_in_blocks.get(outlet)
        if born is not None and born.view == part:
            continue
        there = in_blocks(lowering, outlet, form)
        plain = there or lowering.converted(lowering.known_view(outlet), part.element)
        pairs = [(part, plain.view)] if isinstance(plain, Blocked) else form.parts(part, plain)
        steps += [copy_step(out_of, into, site.isa, ()) for into, out_of in pairs]
    return steps
