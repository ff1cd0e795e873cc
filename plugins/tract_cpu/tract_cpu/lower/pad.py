"""Elements before and after axes: the inside is copied, then axis after axis grows, the last one first."""

from __future__ import annotations

from collections.abc import Iterator

from tract_core.dims import Dim, is_one, product
from tract_core.ops.pad import Pad, PadConstant
from tract_core.plugins.tables import Rows
from tract_cpu.isa import Isa
from tract_cpu.kernels.pad import PadPlan
from tract_cpu.kernels.runs import Run
from tract_cpu.lower.copies import copy_step
from tract_cpu.lower.loops import collapsed
from tract_cpu.lower.lowering import MOVES, Site
from tract_cpu.lower.program import Argument, NativeStep
from tract_cpu.lower.views import View

ROWS = Rows()


@ROWS.row(MOVES, Pad)
def lower_pad(op: Pad, site: Site) -> str | None:
    """A view where nothing is added."""
    (x,) = site.known_inputs()
    grown = [axis for axis, pair in enumerate(op.pads) if pair != (0, 0)]
    if not grown:
        site.place(x)
        return None
    value = site.lowering.constant(op.mode.value.array) if isinstance(op.mode, PadConstant) else None
    result = site.lowering.new(site.outlet)
    inside = result
    for axis in grown:
        inside = inside.part(axis, op.pads[axis][0], x.shape[axis])
    steps = [copy_step(x, inside, site.isa, ())]
    for axis in reversed(grown):
        around = result
        for outer in range(axis):
            around = around.part(outer, op.pads[outer][0], x.shape[outer])
        before, after = op.pads[axis]
        if value is None:
            steps.append(_grown(op, axis, around, (before, x.shape[axis], after), site.isa))
        else:
            ends = _ends(around, axis, before, x.shape[axis], after)
            steps += [copy_step(value.stretched(end.shape), end, site.isa, ()) for end in ends]
    site.add_all(steps)
    return None


def _ends(around: View, axis: int, before: Dim, size: Dim, after: Dim) -> Iterator[View]:
    if before != 0:
        yield around.part(axis, 0, before)
    if after != 0:
        yield around.part(axis, before + size, after)


def _grown(op: Pad, axis: int, around: View, sizes: tuple[Dim, Dim, Dim], isa: Isa) -> NativeStep:
    """``around``: the result, but for what other axes outside of this one lack yet. What is inside has no gaps."""
    around = around.as_bits()
    run = product(around.shape[axis + 1 :])
    outer = collapsed(around.shape[:axis], [around.strides[:axis]])
    plan = PadPlan(around.element, op.mode, len(outer), None if is_one(run) else Run.of(isa, around.element))
    arguments: list[Argument] = [*sizes, run, around.address]
    for loop in outer:
        arguments += [loop.size, *loop.strides]
    rounds = product([loop.size for loop in outer])
    work = rounds * run * (sizes[0] + sizes[2])
    return NativeStep(plan, tuple(arguments), rounds, (), (around.storage,), work=work)
