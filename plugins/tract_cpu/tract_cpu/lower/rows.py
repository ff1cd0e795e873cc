"""Which passes a program for rows has, and how its loops go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from tract_llvm.elements.expressions import Apply, widest_bits
from tract_llvm.fuse.code_size import CHEAP, code_size
from tract_llvm.fuse.nest import Number
from tract_llvm.fuse.region import Operand, Region
from tract_llvm.fuse.steps import Fold, Load, RowStep, operands_of
from tract_llvm.isa import Isa
from tract_llvm.language.types import numpy_type
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.views import View, contiguous_strides

from tract_core.dims import Dim, ceil_div, is_one, product
from tract_core.frozen import frozen
from tract_cpu.draft.lowering import Lowering
from tract_cpu.kernels.rows import Lanes, Pass, RowsPlan, RowTensor
from tract_cpu.place.blocked import operands_in_blocks
from tract_cpu.place.chain import as_they_are
from tract_cpu.place.wholes import result_for
from tract_cpu.program.arguments import Given, arguments
from tract_cpu.program.form import Form
from tract_cpu.program.program import NativeStep

_ALIGNED: Final = 64
"""Bytes; where each row of scratch memory begins."""

_SIDE_BY_SIDE: Final = 4
"""How many vectors are computed side by side where few operations are done on each, to hide how long one takes."""

_COSTLY_SIDE_BY_SIDE: Final = 2
"""The same, where some of these operations take many instructions."""

_FEW: Final = 8
"""How many operations that is."""


def placed_operand(lowering: Lowering, region: Region, tensor: object, form: Form | None = None) -> View:
    """Where a tensor is that a region loads, stretched to its shape. ``form``: the blocks in which it works."""
    if isinstance(tensor, Number):
        number = np.full((1,) * len(region.shape), tensor.value, numpy_type(tensor.element))
        view = lowering.constant(number)
        assert view is not None  # it is of a type that NumPy has
        return view.stretched(region.shape)
    assert isinstance(tensor, Operand)  # there are no others
    place = as_they_are(lowering) if form is None else operands_in_blocks(lowering, form)
    return place(tensor.outlet, tensor.shape)


def rows_step(lowering: Lowering, region: Region, tensors: Sequence[View], form: Form | None = None) -> NativeStep:
    """The call that computes a region; what is read outside of it gets memory. ``tensors``: what it loads.

    Tensors whose rows neither go from neighbour to neighbour nor lie side by side are copied where rows are gone
    through several times: one element at a time, each of these would take as long as the copy and more.
    """
    model, nodes = lowering.model, set(region.nodes)
    outside = {
        outlet: number
        for outlet, number in region.values
        if outlet in model.outputs or any(reader.node not in nodes for reader in model.outlet(outlet).successors)
    }
    results = {outlet: result_for(lowering, outlet, form) for outlet in outside}
    rows = {number for outlet, number in outside.items() if results[outlet].shape == region.shape}
    passes = _Passes(region, tensors)
    passes.schedule(rows, set(outside.values()) - rows)
    written = [(number, results[outlet]) for outlet, number in outside.items()]
    loops = _Loops(region, tensors, passes, written, rows, lowering.isa)
    if len(passes.drafts) > 1 and loops.would_have_vectors:
        loops = replace(loops, tensors=[lowering.near(view) for view in tensors])
    return loops.step(region.nodes)


@dataclass(slots=True)
class _Draft:
    """A pass while it is made: what belongs to it, values by their numbers (see `Pass`)."""

    once: set[int] = field(default_factory=set[int])
    reloads: set[int] = field(default_factory=set[int])
    each: set[int] = field(default_factory=set[int])
    folds: set[int] = field(default_factory=set[int])
    writes: set[int] = field(default_factory=set[int])


class _Passes:
    """Which value is computed in which pass. ``stored``: those that a pass lays down for passes after it."""

    def __init__(self, region: Region, tensors: Sequence[View]) -> None:
        self.region, self._tensors = region, tensors
        self.stored: set[int] = set()
        self.drafts: list[_Draft] = []
        self.last: set[int] = set()
        self._depth: list[int] = []
        self._once: list[bool] = []
        self._costly: list[bool] = []
        for step in region.steps:
            self._note(step)

    def _note(self, step: RowStep) -> None:
        """Of one more value: in which pass it can be computed first, whether there is one per row, and its cost."""
        if isinstance(step, Load):
            strides = self._tensors[step.tensor].strides
            self._depth.append(0)
            self._once.append(all(strides[axis] == 0 for axis in self.region.axes))
            self._costly.append(False)
        elif isinstance(step, Fold):
            self._depth.append(self._depth[step.operand] + 1)
            self._once.append(True)
            self._costly.append(False)
        else:
            self._depth.append(max(self._depth[one] for one in step.operands))
            once = all(self._once[one] for one in step.operands)
            self._once.append(once)
            is_rounded = step.result.computed is not step.result
            costly = is_rounded or type(step.op) not in CHEAP or any(self._costly[one] for one in step.operands)
            self._costly.append(costly and not once)

    def schedule(self, rows: set[int], others: set[int]) -> None:
        """Fill the passes. ``rows``: values that are written at each position; ``others``: once per row."""
        folds = [step.operand for step in self.region.steps if isinstance(step, Fold)]
        self.drafts = [_Draft() for _ in range(1 + max(self._depth[one] for one in [*rows, *folds]))]
        for number in others:
            self._need_once(number)
        for number in rows:
            self.drafts[self._depth[number]].writes.add(number)
        for place in reversed(range(len(self.drafts))):
            draft = self.drafts[place]
            for fold in sorted(draft.folds):
                self._need(operands_of(self.region.steps[fold])[0], place)
            for number in sorted(draft.writes):
                self._need(number, place)

    def _need(self, number: int, place: int) -> None:
        """A pass needs a value at each position."""
        draft = self.drafts[place]
        if self._once[number]:
            self._need_once(number)
        elif self._costly[number] and self._depth[number] < place:
            draft.reloads.add(number)
            self.stored.add(number)
            self.drafts[self._depth[number]].writes.add(number)
        elif number not in draft.each:
            draft.each.add(number)
            for operand in operands_of(self.region.steps[number]):
                self._need(operand, place)

    def _need_once(self, number: int) -> None:
        """A value is needed that there is one of per row."""
        step, place = self.region.steps[number], self._depth[number]
        if isinstance(step, Fold):
            self.drafts[place - 1].folds.add(number)
            return
        found = self.drafts[place].once if place < len(self.drafts) else self.last
        if number not in found:
            found.add(number)
            for operand in operands_of(self.region.steps[number]):
                self._need_once(operand)

    def vectors(self, draft: _Draft) -> int:
        """How many vectors a pass computes side by side: more where there is less to do for each."""
        if len(draft.each) > _FEW:
            return 1
        return _COSTLY_SIDE_BY_SIDE if any(map(_is_costly, self._computed(draft))) else _SIDE_BY_SIDE

    def waits(self, draft: _Draft) -> bool:
        """Whether a vector has long to wait in a pass: for an operator of many instructions, or until it is rounded."""
        return any(_is_costly(step) or step.result.computed is not step.result for step in self._computed(draft))

    def _computed(self, draft: _Draft) -> list[RowStep]:
        steps = (self.region.steps[number] for number in draft.each)
        return [step for step in steps if isinstance(step, Apply)]

    def vectors_across(self, registers: int) -> int:
        """The same for neighbouring rows, through all passes. A plain reduction reads as long pieces as it can."""
        if len(self.drafts) == 1 and len(self.drafts[0].each) == len(self.drafts[0].folds) == 1:
            return registers // 2
        return min(map(self.vectors, self.drafts))


@frozen
class _Loops:
    """The loops and the tensors of the kernel.

    ``written``: values, and where they go; ``rows``: those among them that are written at each position.
    """

    region: Region
    tensors: Sequence[View]
    passes: _Passes
    written: list[tuple[int, View]]
    rows: set[int]
    isa: Isa

    def step(self, nodes: tuple[int, ...]) -> NativeStep:
        """The call."""
        views, (outer_axes, inner_axes) = self._views, self._axes
        stored = sorted(self.passes.stored)
        types = [self.region.steps[number].result.computed for number in stored]
        nothing = (0,) * len(outer_axes)
        outer = self._loops(
            outer_axes, [*([v.strides[a] for a in outer_axes] for v in views), *[nothing for _ in stored]]
        )
        sizes = [self.region.shape[axis] for axis in inner_axes]
        lanes = self._lanes(outer, self._loops(inner_axes, [[v.strides[a] for a in inner_axes] for v in views]))
        apart = lanes.block if lanes.across else 1
        scratch = [stride * apart for stride in contiguous_strides(sizes)]
        inner = self._loops(
            inner_axes, [*([v.strides[a] for a in inner_axes] for v in views), *[scratch for _ in stored]]
        )
        inner = inner or [StridedLoop(1, (0,) * (len(views) + len(stored)))]
        moves = [_move(stride) for stride in (outer if lanes.across else inner)[-1].strides]
        tensors = [RowTensor(view.element, move) for view, move in zip(views, moves, strict=False)]
        tensors += [RowTensor(one, "next", scratch=True) for one in types]
        plan = RowsPlan(
            tuple(self.region.steps),
            tuple(tensors),
            tuple(self._pass(draft, len(views), stored) for draft in self.passes.drafts),
            tuple(sorted(self.passes.last)),
            tuple((n, place) for n, place in self._places() if n not in self.rows),
            len(outer),
            len(inner),
            lanes,
        )
        tensors_given: list[dict[str, Given]] = [{"tensor": view.address} for view in views]
        room: Dim = 0
        for one in types:
            tensors_given.append({"scratch": room})
            room = room + ceil_div(product(sizes) * (apart * one.bytes), _ALIGNED) * _ALIGNED
        given = arguments(
            plan,
            outer_sizes=[loop.size for loop in outer],
            inner_sizes=[loop.size for loop in inner],
            tensors=tensors_given,
            outer=[{"strides": loop.strides} for loop in outer],
            inner=[{"strides": loop.strides} for loop in inner],
        )
        results = tuple(view.storage for _, view in self.written)
        work = product(self.region.shape) * len(plan.passes)
        each = max(1, sum(map(code_size, plan.steps)) // len(plan.passes))
        tasks, only_rows = _tasks(outer, lanes), not plan.results
        return NativeStep(plan, given, tasks, nodes, results, room, work, each, only_rows)

    @property
    def would_have_vectors(self) -> bool:
        """Whether vectors go along rows once what is read is near, while nothing goes in vectors now."""
        if all(view.is_near for view in self.tensors):
            return False
        outer, inner = (self._loops(axes, [[v.strides[a] for a in axes] for v in self._views]) for axes in self._axes)
        long = [axis for axis, size in enumerate(self.region.shape) if not is_one(size)]
        if not long or long[-1] not in self.region.axes or self._lanes(outer, inner).count:
            return False
        return all(view.is_near for view in self._views[len(self.tensors) :])

    @property
    def _views(self) -> list[View]:
        """What is read, then what is written, in the shape of the region."""
        return [*self.tensors, *(view.stretched(self.region.shape) for _, view in self.written)]

    @property
    def _axes(self) -> tuple[list[int], list[int]]:
        """Around rows, and along them."""
        axes = range(len(self.region.shape))
        return [axis for axis in axes if axis not in self.region.axes], sorted(self.region.axes)

    def _loops(self, axes: Sequence[int], strides: Sequence[Sequence[Dim]]) -> list[StridedLoop]:
        return collapsed([self.region.shape[axis] for axis in axes], strides)

    def _places(self) -> list[tuple[int, int]]:
        """The values that are written, with the numbers of their tensors."""
        return [(n, len(self.tensors) + place) for place, (n, _) in enumerate(self.written)]

    def _lanes(self, outer: Sequence[StridedLoop], inner: Sequence[StridedLoop]) -> Lanes:
        """Along the rows where every tensor lets them be read so, else across, else element by element."""
        types = [step.result for step in self.region.steps if not isinstance(step, Fold)]
        count = self.isa.lanes(widest_bits(types))
        elements = [*(view.element for view in self.tensors), *(view.element for _, view in self.written)]
        masked = self.isa.masks_bits <= min(one.bytes * 8 for one in elements)
        vectors = self.passes.vectors_across(self.isa.registers)
        if outer and isinstance(outer[-1].size, int):
            vectors = max(1, min(vectors, outer[-1].size // count))
        along = {place for n, place in self._places() if n in self.rows}
        if inner and _fits(inner[-1], along):
            return Lanes(count, 1, masked, across=False)
        if outer and _fits(outer[-1], {place for _, place in self._places()}):
            return Lanes(count, vectors, masked, across=True)
        return Lanes(0, 1, masked=False, across=False)

    def _pass(self, draft: _Draft, first: int, stored: Sequence[int]) -> Pass:
        memory = {number: first + place for place, number in enumerate(stored)}
        writes = [(n, place) for n, place in self._places() if n in self.rows and n in draft.writes]
        writes += [(n, memory[n]) for n in sorted(draft.writes & set(stored))]
        reloads = [(n, memory[n]) for n in sorted(draft.reloads)]
        once, each, folds = (tuple(sorted(one)) for one in (draft.once, draft.each, draft.folds))
        passes = self.passes
        return Pass(once, tuple(reloads), each, folds, tuple(writes), passes.vectors(draft), passes.waits(draft))


def _is_costly(step: RowStep) -> bool:
    return isinstance(step, Apply) and type(step.op) not in CHEAP


def _fits(loop: StridedLoop, written: set[int]) -> bool:
    """Whether vectors can go along a loop: tensors stay or go to the next element, and those that are written go."""
    return all(stride == 1 or (stride == 0 and n not in written) for n, stride in enumerate(loop.strides))


def _move(stride: Dim) -> str:
    return "stays" if stride == 0 else "next" if stride == 1 else "far"


def _tasks(outer: Sequence[StridedLoop], lanes: Lanes) -> Dim:
    if not lanes.across:
        return product(loop.size for loop in outer)
    return product(loop.size for loop in outer[:-1]) * ceil_div(outer[-1].size, lanes.block)
