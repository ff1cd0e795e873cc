"""Integers as vectors with one element that differs: a tensor is filled, then written to."""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.fuse.known import LATE

from tract_core.ops.one_hot import DynOneHot, OneHot, check_size
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.copies import copy_step
from tract_cpu.draft.lowering import Site
from tract_cpu.lower.gather import Indexed
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import MOVES

ROWS = Rows()


def _size(op: DynOneHot, shapes: list[Shape], dim: Array) -> Reading:
    sizes = list(shapes[0])
    check_size(int(dim))
    sizes.insert(op.axis, int(dim))
    return Reading([sizes])


ROWS.add(READS, DynOneHot, Reads((1,), _size))


@ROWS.row(MOVES, OneHot, DynOneHot)
def lower_one_hot(op: OneHot | DynOneHot, site: Site) -> str | None:
    """A number outside is no place at all."""
    numbers, *_ = site.known_inputs()
    if isinstance(op, DynOneHot) and site.numbers(0) is None:
        return LATE
    off, on = site.lowering.constant(op.off.array), site.lowering.constant(op.on.array)
    if off is None or on is None:
        return f"native code does not know {op.off.datum_type.short}"
    result = site.lowering.new(site.outlet)
    strides = tuple(stride for axis, stride in enumerate(result.strides) if axis != op.axis)
    target = replace(result, shape=numbers.shape, strides=strides)
    limits = ((op.dim, result.strides[op.axis]),)
    written = Indexed(target, numbers, on.stretched(numbers.shape), 0, limits, None)
    filled = copy_step(off.stretched(result.shape), result, site.isa, ())
    site.add_all([filled, written.writing(site.isa, refuses=False)])
    return None
