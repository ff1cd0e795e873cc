"""A range of an axis: a view that begins further in."""

from __future__ import annotations

from dataclasses import replace

from tract_core.dims import product
from tract_core.ops.slice import DynSlice, Slice, check_range
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.sizes import RangeOfAxisPlan
from tract_cpu.lower.gather import Indexed, with_run
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import STATUS, NativeStep
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import MOVES

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


ROWS.add(READS, DynSlice, Reads((1, 2), _range, checks=True))


@ROWS.row(MOVES, DynSlice)
def lower_dyn_slice(op: DynSlice, site: Site) -> str | None:
    """A view that begins where the run says; in a body, where nothing is read, a copy."""
    x, *_ = site.known_inputs()
    numbers = site.numbers(1)
    if numbers is None:
        site.add_all(_copying(op, site))
    else:
        site.place(x.part(op.axis, numbers[0], op.length))
    return None


def _copying(op: DynSlice, site: Site) -> list[NativeStep]:
    """A kernel that refuses where the range is no range, or has another length; a copy, where anybody reads it."""
    x, start, end = site.known_inputs()
    (result,), model = site.results(), site.lowering.model
    plan = RangeOfAxisPlan(start.element, end.element)
    given = arguments(
        plan, status=STATUS, start=start.address, end=end.address, length=op.length, size=x.shape[op.axis]
    )
    checking = NativeStep(plan, given, 1, (), (result.storage,))
    if not model.outlet(site.outlet).successors and site.outlet not in model.outputs:
        return [checking]
    x, _ = with_run(site.lowering, x, op.axis)
    shape, still = (*x.shape[: op.axis], 1), (0,) * (op.axis + 1)
    source = replace(x, shape=shape, strides=(*x.strides[: op.axis], 0))
    target = replace(result, shape=shape, strides=(*result.strides[: op.axis], 0))
    limits, run = ((x.shape[op.axis], x.strides[op.axis]),), op.length * product(x.shape[op.axis + 1 :])
    copying = Indexed(source, replace(start, shape=shape, strides=still), target, 0, limits, run)
    return [checking, copying.reading(site.isa)]
