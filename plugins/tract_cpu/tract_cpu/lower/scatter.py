"""Elements written to positions of a copy, one after the other."""

from __future__ import annotations

from dataclasses import replace

from tract_core.ops.scatter import ScatterElements, ScatterNd
from tract_core.plugins.tables import Rows
from tract_cpu.lower.copies import copy_step
from tract_cpu.lower.gather import Indexed, with_run, without
from tract_cpu.lower.lowering import MOVES, Site
from tract_cpu.lower.views import View

ROWS = Rows()


@ROWS.row(MOVES, ScatterElements)
def lower_scatter_elements(op: ScatterElements, site: Site) -> str | None:
    """A write for every element."""
    x, numbers, updates = site.known_inputs()
    why = _unfit(op, x)
    if why is not None:
        return why
    result = site.lowering.new(site.outlet)
    target, limits = without(result, [op.axis], numbers.shape), ((x.shape[op.axis], result.strides[op.axis]),)
    updates = replace(updates, shape=numbers.shape)
    written = Indexed(target, numbers, updates, 0, limits, None).writing(site.isa, op.reduction)
    site.add_all([copy_step(x, result, site.isa, ()), written])
    return None


@ROWS.row(MOVES, ScatterNd)
def lower_scatter_nd(op: ScatterNd, site: Site) -> str | None:
    """A write for every place."""
    x, numbers, updates = site.known_inputs()
    why = _unfit(op, x)
    if why is not None:
        return why
    shape = numbers.shape[:-1]
    depth = len(shape) + len(x.shape) - len(updates.shape)
    updates, run = with_run(site.lowering, updates, len(shape))
    result = site.lowering.new(site.outlet)
    target = replace(result, shape=shape, strides=(0,) * len(shape))
    places = replace(numbers, shape=shape, strides=numbers.strides[:-1])
    source = replace(updates, shape=shape, strides=updates.strides[: len(shape)])
    limits = tuple(zip(x.shape[:depth], result.strides[:depth], strict=True))
    written = Indexed(target, places, source, numbers.strides[-1], limits, run).writing(site.isa, op.reduction)
    site.add_all([copy_step(x, result, site.isa, ()), written])
    return None


def _unfit(op: ScatterElements | ScatterNd, x: View) -> str | None:
    if op.reduction != "none" and (x.element.kind == "b" or x.element.computed is not x.element):
        return f"there is no native code for {op.reduction!r} of {x.element.name} yet"
    return None
