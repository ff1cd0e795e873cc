"""Tensors of one number, in a shape that is an input."""

from __future__ import annotations

from tract_llvm.fuse.known import LATE

from tract_core.ops.fill import DynFill, sizes_of
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import MOVES

ROWS = Rows()


def _sizes(op: DynFill, shapes: list[Shape], wanted: Array) -> Reading:
    return Reading([sizes_of(wanted)])


ROWS.add(READS, DynFill, Reads((0,), _sizes))


@ROWS.row(MOVES, DynFill)
def lower_fill(op: DynFill, site: Site) -> str | None:
    """A view on the number, whose strides are 0."""
    value = site.lowering.constant(op.value.array)
    if value is None:
        return f"native code does not know {op.value.datum_type.short}"
    if site.numbers(0) is None:
        return LATE
    site.place(value.stretched(op.sizes))
    return None
