"""A range of an axis: a view that begins further in."""

from __future__ import annotations

from tract_core.ops.slice import DynSlice, Slice, check_range
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.lower.lowering import MOVES, Site
from tract_cpu.lower.reads import LATE, READS, Reading, Reads, Shape

ROWS = Rows()


@ROWS.row(MOVES, Slice)
def lower_slice(op: Slice, site: Site) -> str | None:
    """A view. That the range lies inside is a condition of the model, which every run checks."""
    (x,) = site.known_inputs()
    site.place(x.part(op.axis, op.start, op.end - op.start))
    return None


def _range(op: DynSlice, shapes: list[Shape], start: Array, end: Array) -> Reading:
    first, last, sizes = int(start), int(end), list(shapes[0])
    check_range(op.axis, sizes[op.axis], first, last)
    sizes[op.axis] = last - first
    return Reading([sizes], [first])


ROWS.add(READS, DynSlice, Reads((1, 2), _range))


@ROWS.row(MOVES, DynSlice)
def lower_dyn_slice(op: DynSlice, site: Site) -> str | None:
    """A view that begins where the run says."""
    x, *_ = site.known_inputs()
    numbers = site.numbers(1)
    if numbers is None:
        return LATE
    site.place(x.part(op.axis, numbers[0], op.length))
    return None
