"""Shapes that are an input: the same memory, looked at in another way."""

from __future__ import annotations

from tract_llvm.fuse.known import LATE

from tract_core.ops.reshape import DynReshape, sizes_now
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.lower.axis import place_reshaped
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import MOVES

ROWS = Rows()


def _shape(op: DynReshape, shapes: list[Shape], wanted: Array) -> Reading:
    return Reading([sizes_now(op, shapes[0], wanted)])


ROWS.add(READS, DynReshape, Reads((1,), _shape))


@ROWS.row(MOVES, DynReshape)
def lower_reshape(op: DynReshape, site: Site) -> str | None:
    """A view; a copy where the elements do not lie as the new shape would have them."""
    x, _ = site.known_inputs()
    if site.numbers(0) is None:
        return LATE
    place_reshaped(site, x, op.sizes)
    return None
