"""A range of an axis: a view that begins further in."""

from __future__ import annotations

from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_cpu.lower.lowering import MOVES, Site

ROWS = Rows()


@ROWS.row(MOVES, Slice)
def lower_slice(op: Slice, site: Site) -> str | None:
    """A view. That the range lies inside is a condition of the model, which every run checks."""
    (x,) = site.known_inputs()
    site.place(x.part(op.axis, op.start, op.end - op.start))
    return None
