"""Elements before and after axes: the inside is copied, then axis after axis grows, the last one first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from tract_llvm.fuse.known import LATE
from tract_llvm.isa import Isa
from tract_llvm.program.loops import collapsed
from tract_llvm.program.views import View

from tract_core.dims import Dim, is_one, product
from tract_core.ops.pad import DynPad, Pad, PadConstant, PadMode, kept_and_grown
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.copies import copy_step
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.pad import PadPlan
from tract_cpu.kernels.runs import Run
from tract_cpu.lay_out.layout import Inside
from tract_cpu.place.padded import padded_blocks
from tract_cpu.program.arguments import arguments, each_loop
from tract_cpu.program.program import NativeStep
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, Pad)
def lower_pad(op: Pad, site: Site) -> str | None:
    """A view where nothing is added; in blocks of channels where the tensor is."""
    form = site.group.form
    if form is not None:
        site.place_in_blocks(padded_blocks(site.lowering, op, site.node.inputs[0], site.outlet, form))
        return None
    if Inside(site.outlet) == site.lowering.layout.plain.get(site.node.inputs[0]) and site.lowering.is_plain(
        site.outlet
    ):
        site.place(site.lowering.known_view(site.outlet))  # its input was written there
        return None
    (x,) = site.known_inputs()
    _pad(site, op.mode, x, op.pads, _value(site, op.mode))
    return None


def _cut_and_grown(op: DynPad, shapes: list[Shape], pads: Array) -> Reading:
    kept, grown = kept_and_grown(op, shapes[0], pads)
    numbers = [(start, end - start, *pair) for (start, end), pair in zip(kept, grown, strict=True)]
    return Reading([[size + before + after for _, size, before, after in numbers]], list(chain(*numbers)))


ROWS.add(READS, DynPad, Reads((1,), _cut_and_grown))


@ROWS.row(MOVES, DynPad)
def lower_dyn_pad(op: DynPad, site: Site) -> str | None:
    """For each axis, numbers say where what stays of it begins, how much that is, and how it grows."""
    x, _, *value = site.known_inputs()
    numbers = site.numbers(4 * len(x.shape))
    if numbers is None:
        return LATE
    for axis in range(len(x.shape)):
        x = x.part(axis, numbers[4 * axis], numbers[4 * axis + 1])
    pads = list(zip(numbers[2::4], numbers[3::4], strict=True))
    _pad(site, op.mode, x, pads, value[0] if value else _value(site, op.mode))
    return None


def _value(site: Site, mode: PadMode) -> View | None:
    return site.lowering.constant(mode.value.array) if isinstance(mode, PadConstant) else None


def _pad(site: Site, mode: PadMode, x: View, pads: Sequence[tuple[Dim, Dim]], value: View | None) -> None:
    """``value``: what is added; else, what is inside is repeated as the mode says."""
    grown = [axis for axis, pair in enumerate(pads) if pair != (0, 0)]
    if not grown:
        site.place(x)
        return
    result = site.lowering.new(site.outlet)
    inside = result
    for axis in grown:
        inside = inside.part(axis, pads[axis][0], x.shape[axis])
    steps = [copy_step(x, inside, site.isa, ())]
    for axis in reversed(grown):
        around = result
        for outer in range(axis):
            around = around.part(outer, pads[outer][0], x.shape[outer])
        before, after = pads[axis]
        if value is None or not isinstance(mode, PadConstant):
            steps.append(_grown(mode, axis, around, (before, x.shape[axis], after), site.isa))
        else:
            ends = _ends(around, axis, before, x.shape[axis], after)
            steps += [copy_step(value.stretched(end.shape), end, site.isa, ()) for end in ends]
    site.add_all(steps)


def _ends(around: View, axis: int, before: Dim, size: Dim, after: Dim) -> Iterator[View]:
    if before != 0:
        yield around.part(axis, 0, before)
    if after != 0:
        yield around.part(axis, before + size, after)


def _grown(mode: PadMode, axis: int, around: View, sizes: tuple[Dim, Dim, Dim], isa: Isa) -> NativeStep:
    """``around``: the result, but for what other axes outside of this one lack yet. What is inside has no gaps."""
    around = around.as_bits()
    run = product(around.shape[axis + 1 :])
    outer = collapsed(around.shape[:axis], [around.strides[:axis]])
    plan = PadPlan(around.element, mode, len(outer), None if is_one(run) else Run.of(isa, around.element))
    before, size, after = sizes
    given = arguments(
        plan, before=before, size=size, after=after, run=run, result=around.address, outer=each_loop(outer)
    )
    rounds = product([loop.size for loop in outer])
    work = rounds * run * (sizes[0] + sizes[2])
    return NativeStep(plan, given, rounds, (), (around.storage,), work=work)
