"""Elements picked by their positions: runs of them are copied from places that are only known in the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tract_llvm.isa import Isa
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.storages import Kind, Storage
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, product
from tract_core.frozen import frozen
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.plugins.tables import Rows
from tract_cpu.draft.copies import convert_step
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.kernels.gather import PLACES, IndexedPlan
from tract_cpu.kernels.runs import Run
from tract_cpu.lower.block_weights import lower_rows
from tract_cpu.program.arguments import Given, arguments
from tract_cpu.program.program import STATUS, NativeStep
from tract_cpu.table import MOVES

ROWS = Rows()


@frozen
class Indexed:
    """Three tensors seen in one shape, that of all places, as far as loops go over it.

    ``x``: the one with numbered places, its strides 0 along axes of which numbers say the place; ``numbers``, with
    ``step`` from one coordinate to the next; ``other``. ``limits``: for each coordinate, how many places there are, and
    how far apart. ``run``: how many elements are in a place, which are side by side; ``None`` where it is one.
    """

    x: View
    numbers: View
    other: View
    step: Dim
    limits: tuple[tuple[Dim, Dim], ...]
    run: Dim | None

    def in_bytes(self, storage: Storage) -> Indexed:
        """The same for elements that lie where none of their type would: runs of bytes are copied from ``storage``."""
        size = self.x.element.bytes
        limits = tuple((places, apart * size) for places, apart in self.limits)
        run = size if self.run is None else self.run * size
        x = replace(self.x.as_bytes(), storage=storage)
        return replace(self, x=x, other=self.other.as_bytes(), limits=limits, run=run)

    def reading(self, isa: Isa) -> NativeStep:
        """The call that copies from the places."""
        loops = self._loops()
        tasks = loops[0].size if len(loops) > 1 else ceil_div(loops[0].size, PLACES)
        return self._step(isa, loops, tasks)

    def writing(self, isa: Isa, combine: str = "none", *, refuses: bool = True) -> NativeStep:
        """The call that copies to the places, one after the other, so that the last of several writes holds."""
        loops = [StridedLoop(1, (0, 0, 0)), *self._loops()]
        return self._step(isa, loops, 1, writes=True, combine=combine, refuses=refuses)

    def _loops(self) -> list[StridedLoop]:
        strides = [self.x.strides, self.numbers.strides, self.other.strides]
        return collapsed(self.numbers.shape, strides) or [StridedLoop(1, (0, 0, 0))]

    def _step(
        self,
        isa: Isa,
        loops: Sequence[StridedLoop],
        tasks: Dim,
        *,
        writes: bool = False,
        combine: str = "none",
        refuses: bool = True,
    ) -> NativeStep:
        x, other = (one if combine != "none" else one.as_bits() for one in (self.x, self.other))
        run = None if self.run is None else Run.of(isa, x.element)
        plan = IndexedPlan(x.element, self.numbers.element, len(loops), len(self.limits), run, writes, combine, refuses)
        status: dict[str, Given] = {"status": STATUS} if refuses else {}
        given = arguments(
            plan,
            sizes=[loop.size for loop in loops],
            run=1 if self.run is None else self.run,
            x=x.address,
            numbers=self.numbers.address,
            other=other.address,
            step=self.step,
            limits=[{"places": places, "stride": stride} for places, stride in self.limits],
            loops=[{"strides": loop.strides} for loop in loops],
            **status,
        )
        written = x if writes else other
        work = product(self.numbers.shape) * (1 if self.run is None else self.run)
        return NativeStep(plan, given, tasks, (), (written.storage,), work=work)


def without(view: View, axes: Sequence[int], shape: Sequence[Dim]) -> View:
    """A tensor in a shape of the same rank that does not move along some axes."""
    strides = tuple(0 if axis in axes else stride for axis, stride in enumerate(view.strides))
    return replace(view, shape=tuple(shape), strides=strides)


def with_run(lowering: Lowering, x: View, first: int) -> tuple[View, Dim | None]:
    """The tensor with its axes from ``first`` on without gaps, and how many elements they have; ``None`` for one."""
    inner = collapsed(x.shape[first:], [x.strides[first:]])
    if len(inner) > 1 or (inner and inner[0].strides[0] != 1):
        x = lowering.contiguous(x)
        inner = collapsed(x.shape[first:], [x.strides[first:]])
    return x, inner[0].size if inner else None


def _in_place(site: Site, indexed: Indexed) -> Indexed:
    """What to do so that a table of the model is read where it lies, as in a mapped file, and needs no copy."""
    array = site.array(0)
    if (
        array is None
        or array.flags.aligned
        or not array.flags.c_contiguous
        or indexed.x.storage.kind is not Kind.CONSTANT
    ):
        return indexed
    memory = site.lowering.constant(array.reshape(-1).view(np.uint8))
    assert memory is not None  # native code knows bytes
    return indexed.in_bytes(memory.storage)


@ROWS.row(MOVES, Gather)
def lower_gather(op: Gather, site: Site) -> str | None:
    """A copy for every index; a view where there is one index, which is known, and surely inside."""
    lowering, outlet = site.lowering, site.node.inputs[0]
    if outlet in lowering.block_weights:
        return lower_rows(op, site)
    if outlet in lowering.narrow_weights:
        x, result = lowering.known_constant(lowering.narrow_weights[outlet]), lowering.new(site.outlet)
        narrow, numbers = lowering.like(result, x.element), lowering.known_view(site.node.inputs[1])
        site.add_all([*gathered(site, op.axis, x, numbers, narrow), convert_step(narrow, result, site.isa, ())])
        return None
    (x, numbers), array = site.known_inputs(), site.array(1)
    places = x.shape[op.axis]
    if array is not None and array.size == 1 and isinstance(places, int) and -places <= array.item() < places:
        part = x.part(op.axis, int(array.item()) % places, 1)
        shape = (*x.shape[: op.axis], *(1,) * array.ndim, *x.shape[op.axis + 1 :])
        strides = (*x.strides[: op.axis], *(0,) * array.ndim, *x.strides[op.axis + 1 :])
        site.place(replace(part, shape=shape, strides=strides))
        return None
    site.add_all(gathered(site, op.axis, x, numbers))
    return None


def gathered(site: Site, axis: int, x: View, numbers: View, target: View | None = None) -> list[NativeStep]:
    """The calls that copy slices of the first input, to the result unless there is another ``target``."""
    x, run = with_run(site.lowering, x, axis + 1)
    result = site.lowering.new(site.outlet) if target is None else target
    added, outer = len(numbers.shape), x.strides[:axis]
    shape = (*x.shape[:axis], *numbers.shape)
    source = replace(x, shape=shape, strides=(*outer, *(0,) * added))
    places = replace(numbers, shape=shape, strides=(*(0,) * axis, *numbers.strides))
    into = replace(result, shape=shape, strides=result.strides[: axis + added])
    limits = ((x.shape[axis], x.strides[axis]),)
    steps = [_in_place(site, Indexed(source, places, into, 0, limits, run)).reading(site.isa)]
    if any(not isinstance(size, int) or size == 0 for size in x.shape[:axis]):
        steps.insert(0, _checking(site, x, numbers, limits))
    return steps


def _checking(site: Site, x: View, numbers: View, limits: tuple[tuple[Dim, Dim], ...]) -> NativeStep:
    """The call that looks whether numbers are inside, which nobody else does where there is nothing to move."""
    still = replace(x, shape=numbers.shape, strides=(0,) * len(numbers.shape))
    nowhere = replace(still, storage=site.lowering.room(x.element.bytes), offset=0)
    return Indexed(still, numbers, nowhere, 0, limits, 0).reading(site.isa)


@ROWS.row(MOVES, GatherElements)
def lower_gather_elements(op: GatherElements, site: Site) -> str | None:
    """A copy for every element."""
    x, numbers = site.known_inputs()
    result = site.lowering.new(site.outlet)
    source, limits = without(x, [op.axis], numbers.shape), ((x.shape[op.axis], x.strides[op.axis]),)
    site.add_all([Indexed(source, numbers, result, 0, limits, None).reading(site.isa)])
    return None


@ROWS.row(MOVES, GatherNd)
def lower_gather_nd(op: GatherNd, site: Site) -> str | None:
    """A copy for every place."""
    x, numbers = site.known_inputs()
    batch, depth = op.batch_dims, int(numbers.shape[-1])
    x, run = with_run(site.lowering, x, batch + depth)
    result = site.lowering.new(site.outlet)
    shape = numbers.shape[:-1]
    source = replace(x, shape=shape, strides=(*x.strides[:batch], *(0,) * (len(shape) - batch)))
    places = replace(numbers, shape=shape, strides=numbers.strides[:-1])
    target = replace(result, shape=shape, strides=result.strides[: len(shape)])
    limits = tuple((x.shape[axis], x.strides[axis]) for axis in range(batch, batch + depth))
    indexed = Indexed(source, places, target, numbers.strides[-1], limits, run)
    site.add_all([_in_place(site, indexed).reading(site.isa)])
    return None
