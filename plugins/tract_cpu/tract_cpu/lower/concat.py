"""Tensors one after the other: each is copied to its place, if it was not written there at once."""

from __future__ import annotations

from tract_core.dims import Dim
from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_cpu.lower.copies import copy_step
from tract_cpu.lower.lowering import CPU, Site
from tract_cpu.lower.program import NativeStep

ROWS = Rows()


@ROWS.row(CPU, TypedConcat)
def lower_concat(op: TypedConcat, site: Site) -> str | None:
    """A copy for every input that lies elsewhere."""
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
