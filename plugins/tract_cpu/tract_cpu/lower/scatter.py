"""Elements written to positions of a copy, one after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tract_llvm.language.types import ElementType
from tract_llvm.program.views import View

from tract_core.dims import product
from tract_core.frozen import frozen
from tract_core.ops.scatter import ScatterElements, ScatterNd
from tract_core.plugins.tables import Rows
from tract_cpu.draft.copies import convert_step, copy_step
from tract_cpu.draft.lowering import Site
from tract_cpu.lower.gather import Indexed, with_run, without
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, ScatterElements)
def lower_scatter_elements(op: ScatterElements, site: Site) -> str | None:
    """A write for every element."""
    x, numbers, updates = site.known_inputs()
    why = _unfit(op, x)
    if why is not None:
        return why
    written = _Written.of(op, site)
    target, limits = without(written.to, [op.axis], numbers.shape), ((x.shape[op.axis], written.to.strides[op.axis]),)
    updates = replace(written.held(updates), shape=numbers.shape)
    written.by(Indexed(target, numbers, updates, 0, limits, None), x)
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
    written = _Written.of(op, site)
    updates, run = with_run(site.lowering, written.held(updates), len(shape))
    target = replace(written.to, shape=shape, strides=(0,) * len(shape))
    places = replace(numbers, shape=shape, strides=numbers.strides[:-1])
    source = replace(updates, shape=shape, strides=updates.strides[: len(shape)])
    limits = tuple(zip(x.shape[:depth], written.to.strides[:depth], strict=True))
    written.by(Indexed(target, places, source, numbers.strides[-1], limits, run), x)
    return None


@frozen
class _Written:
    """Where writes go: to the result; narrow floats that are combined, to numbers in f32, which are rounded once."""

    site: Site
    reduction: str
    result: View
    to: View

    @staticmethod
    def of(op: ScatterElements | ScatterNd, site: Site) -> _Written:
        """Memory for a node's result."""
        result = site.lowering.new(site.outlet)
        element = result.element if op.reduction == "none" else result.element.computed
        to = result if element is result.element else _room(site, result, element)
        return _Written(site, op.reduction, result, to)

    def held(self, updates: View) -> View:
        """The updates in the type that they are combined in."""
        if updates.element == self.to.element:
            return updates
        found = _room(self.site, updates, self.to.element)
        self.site.lowering.steps.append(convert_step(updates, found, self.site.isa, ()))
        return found

    def by(self, writes: Indexed, x: View) -> None:
        """Add the calls that copy ``x``, write to the copy, and bring it to the result."""
        isa, written = self.site.isa, writes.writing(self.site.isa, self.reduction)
        if self.to is self.result:
            self.site.add_all([copy_step(x, self.to, isa, ()), written])
        else:
            self.site.add_all([convert_step(x, self.to, isa, ()), written, convert_step(self.to, self.result, isa, ())])


def _room(site: Site, like: View, element: ElementType) -> View:
    size = product(like.shape) * element.bytes
    return View.contiguous(site.lowering.room(size), element, like.shape)


def _unfit(op: ScatterElements | ScatterNd, x: View) -> str | None:
    if op.reduction != "none" and (x.element.kind == "b" or x.element.bits < _BYTE):
        return f"there is no native code for {op.reduction!r} of {x.element.name} yet"
    return None


_BYTE: Final = 8
