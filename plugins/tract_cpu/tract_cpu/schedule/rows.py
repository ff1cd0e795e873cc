"""Which convolutions are computed row by row, so that what is between them stays in the cache.

A tensor that only one convolution reads, and that is too large for the cache, is not written to memory: its rows are
computed right before they are read. Where windows overlap at the ends of strips of rows that is done twice, so it has
to be worth that. No tensor is known by its name: what counts are bytes and multiply-adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Final, cast

from tract_llvm.isa import Isa
from tract_llvm.program.storages import NOWHERE, Address, Storage
from tract_llvm.program.views import View

from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_cpu.draft.draft import Drafted
from tract_cpu.kernels.border import BorderPlan
from tract_cpu.kernels.conv import ConvPlan, Ring
from tract_cpu.kernels.pipeline import PipelinePlan
from tract_cpu.products.direct import NEAR, Candidate, Direct
from tract_cpu.products.windows import ConvInput, Parts
from tract_cpu.program.arguments import Given, arguments
from tract_cpu.program.program import Argument, NativeStep, Step, touched

_LARGE: Final = 1 << 19
"""Bytes of a tensor that does not stay in the second cache beside what is read and written with it."""

_ROOM: Final = 1 << 19
"""Bytes of rows that do."""

_TRAFFIC: Final = 32
"""What it takes to write an element to memory and to read it again, in multiply-adds."""

_ALIGNED: Final = 64
"""Bytes; where rows in scratch memory begin."""


@frozen
class RowPipeline:
    """``convs``: convolutions that one step computes, in order. ``place``: of the step among all."""

    convs: tuple[Candidate, ...]
    step: NativeStep
    place: int


def joined_by_rows(drafted: Drafted, isa: Isa, threads: int) -> Drafted:
    """The same with convolutions computed row by row together with those before them, where that is best."""
    if len(drafted.convs) < 2:
        return drafted
    places = _Places.of(drafted.steps)
    last: dict[Storage, RowPipeline] = {}
    steps, gone, unseen = list(drafted.steps), set[int](), set[OutletId]()
    for conv in drafted.convs:
        place = places.convs[conv.direct.step().arguments]
        before = last.pop(conv.direct.parts.source.view.storage, None)
        between = [] if before is None else steps[before.place + 1 : place]
        step = None if before is None else _longer(before, conv, steps[place], between, _Machine(isa, threads))
        if step is not None and before is not None:
            gone |= {before.place} | {places.borders[one] for one in before.step.results if one in places.borders}
            unseen |= {before.convs[-1].direct.parts.chain.outlet} if conv.owner == 0 else set()
            steps[place] = step
        found, convs = steps[place], (*before.convs, conv) if step is not None and before is not None else (conv,)
        assert isinstance(found, NativeStep)  # it computes a convolution
        if conv.stays and _is_regular(conv.direct):
            last[conv.direct.parts.result.storage] = RowPipeline(convs, found, place)
    blocked = {outlet: one for outlet, one in drafted.blocked.items() if outlet not in unseen}
    return replace(drafted, steps=tuple(steps), blocked=blocked).without(gone)


@frozen
class _Places:
    """The places of steps: of convolutions by their arguments, of what fills borders by what it writes."""

    convs: dict[tuple[Argument, ...], int]
    borders: dict[Storage, int]

    @staticmethod
    def of(steps: Sequence[Step]) -> _Places:
        """Those of all steps."""
        found = _Places({}, {})
        for place, step in enumerate(steps):
            if not isinstance(step, NativeStep):
                continue
            if isinstance(step.kernel, ConvPlan):
                found.convs[step.arguments] = place
            elif isinstance(step.kernel, BorderPlan):
                found.borders[step.results[0]] = place
        return found


@frozen
class _Machine:
    """``threads``: how many there may be to share strips."""

    isa: Isa
    threads: int


def _is_regular(conv: Direct) -> bool:
    """Whether it moves along two axes of known sizes, with weights that are part of the model."""
    parts = conv.parts
    sizes = [view.shape[one.place] for view in (parts.source.view, parts.result) for one in parts.axes]
    known = [*sizes, *(one.before for one in parts.axes), parts.weights.inputs]
    ints = all(isinstance(one, int) for one in known)
    return ints and len(parts.axes) == 2 and parts.weights.array is not None and parts.grouping is None


def _longer(
    before: RowPipeline, conv: Candidate, step: Step, between: Sequence[Step], machine: _Machine
) -> NativeStep | None:
    """The step that computes one convolution more, where that can be and is worth it.

    ``step``: the one that computes it by itself; ``between``: those from the one before on.
    """
    assert isinstance(step, NativeStep)  # as it computes a convolution
    last, parts = before.convs[-1], conv.direct.parts
    alone = last.only_reader == parts.chain.nodes[0] and last.owner == conv.owner
    same = parts.source.view == last.direct.parts.result and parts.has_batch == last.direct.parts.has_batch
    if not (alone and same and _is_regular(conv.direct) and _may_wait(before.step, between)):
        return None
    strips = _Strips(tuple(one.direct for one in (*before.convs, conv)), machine.threads)
    if not strips.are_worth_it():
        return None
    return replace(strips.step(machine.isa), nodes=(*before.step.nodes, *step.nodes), body=step.body, times=step.times)


def _may_wait(step: NativeStep, others: Sequence[Step]) -> bool:
    """Whether a step may be done behind others: these neither touch what it writes nor write what it reads."""
    read = set(touched(step))
    return not any(set(step.results) & set(touched(one)) or set(one.results) & read for one in others)


@frozen
class _Between:
    """Rows between two convolutions. ``before``, ``after``: columns of zeros.

    ``line``: elements of a row of one block; ``begin``: where in scratch memory they are; that and ``bytes`` in bytes.
    """

    ring: Ring
    view: View
    line: int
    before: int
    after: int
    begin: int
    bytes: int

    def given(self, axis: int) -> dict[str, Given]:
        """What the kernel is told of it. ``axis``: that of the rows."""
        lanes = self.view.shape[-1]
        sides: dict[str, Given] = {"before": lanes * self.before, "after": lanes * self.after}
        return {"begin": self.begin, "line": self.line, "row": self.view.strides[axis], **sides}


@frozen
class _Strips:
    """Convolutions row by row. ``threads``: how many there may be to share them."""

    convs: tuple[Direct, ...]
    threads: int

    def are_worth_it(self) -> bool:
        """Whether the tensors between are large, all else stays in the cache, and little is computed twice."""
        between = [one.parts.result for one in self.convs[:-1]]
        elements = [prod(map(int, one.shape[1:] if self._has_batch else one.shape)) for one in between]
        large = all(count * one.element.bytes > _LARGE for count, one in zip(elements, between, strict=True))
        weights = sum(int(one.parts.weights.bytes) for one in self.convs)
        if not large or weights > NEAR or self._scratch() > _ROOM:
            return False
        return self._twice(self._count) < _TRAFFIC * sum(elements)

    def step(self, isa: Isa) -> NativeStep:
        """The call of the kernel."""
        between, last = self._between(NOWHERE), self.convs[-1].parts
        views = [one.view for one in between]
        sources, results = [None, *views], [*views, None]
        ends = zip(self.convs, sources, results, strict=True)
        convs = [one.in_rows(_elsewhere(one.parts, *both), isa.registers) for one, *both in ends]
        rows = [one.given(self.convs[0].parts.axes[0].place) for one in between]
        batch = last.result.shape[0] if self._has_batch else 1
        nodes = tuple(node for one in self.convs for node in one.parts.chain.nodes)
        plan = PipelinePlan(tuple(one.plan for one in convs), tuple(one.ring for one in between))
        work = self.convs[0].work
        for one in self.convs[1:]:
            work = work + one.work
        tasks, scratch = batch * self._count, self._scratch()
        found = arguments(plan, strips=self._count, convs=[one.given() for one in convs], rows=rows)
        given = tuple(_placed(argument) for argument in found)
        return NativeStep(plan, given, tasks, nodes, (last.result.storage,), scratch, work)

    @property
    def _has_batch(self) -> bool:
        return self.convs[0].parts.has_batch

    def _rows(self, number: int) -> int:
        parts = self.convs[number].parts
        return cast("int", parts.result.shape[parts.axes[0].place])

    @property
    def _count(self) -> int:
        """How many strips: so many that the longest thread is done soon, and few, as their ends are computed twice.

        The elements are computed the same way whatever their number is.
        """
        rows, batch = self._rows(len(self.convs) - 1), self.convs[0].parts.result.shape[0] if self._has_batch else 1
        once = sum(self._work(number) * self._rows(number) for number in range(len(self.convs)))

        def cost(count: int) -> float:
            tasks = count * (batch if isinstance(batch, int) else 1)
            longest = -(-tasks // self.threads) * -(-rows // count)
            return (once + self._twice(count)) * longest

        return min(range(1, rows + 1), key=cost) if rows else 1

    def _work(self, number: int) -> int:
        """Multiply-adds of a row."""
        parts = self.convs[number].parts
        shape = parts.result.shape[1:] if self._has_batch else parts.result.shape
        return prod(map(int, shape)) // max(1, self._rows(number)) * prod(map(int, parts.weights.view.shape[1:]))

    def _twice(self, count: int) -> int:
        """Multiply-adds that are done twice, as so many strips overlap."""
        total, over = 0, 0
        for number in range(len(self.convs) - 2, -1, -1):
            axis = self.convs[number + 1].parts.axes[0]
            over = over * axis.stride + max(0, (axis.window - 1) * axis.dilation + 1 - axis.stride)
            total += (count - 1) * over * self._work(number)
        return total

    def _scratch(self) -> int:
        return sum(one.bytes for one in self._between(self.convs[0].parts.result.storage))

    def _between(self, nowhere: Storage) -> list[_Between]:
        """What is between each two. Rows that are read for several rows at once are all there together."""
        found: list[_Between] = []
        at_once, begins = 1, 0
        rings: list[Ring] = []
        for number in range(len(self.convs) - 1, 0, -1):
            conv, above = self.convs[number].parts, self.convs[number - 1].parts
            axis = conv.axes[0]
            reach = (axis.window - 1) * axis.dilation + 1
            rows = (at_once - 1) * axis.stride + reach
            before = cast("int", axis.before)
            rings.insert(0, Ring(1 << (rows - 1).bit_length(), axis.window, axis.stride, axis.dilation, before))
            at_once = reach if conv.depthwise and not above.depthwise else 1
        for number, ring in enumerate(rings):
            found.append(_between(self.convs[number].parts, self.convs[number + 1].parts, ring, nowhere, begins))
            begins += found[-1].bytes
        return found


def _between(conv: Parts, following: Parts, ring: Ring, nowhere: Storage, begin: int) -> _Between:
    """The rows, in blocks of channels: [row, block, column, channel]."""
    rows, columns = following.axes
    width, lanes = cast("int", conv.result.shape[columns.place]), conv.form.block
    outputs, before = cast("int", following.result.shape[columns.place]), cast("int", columns.before)
    reach = (outputs - 1) * columns.stride + (columns.window - 1) * columns.dilation + 1
    after = max(0, reach - before - width)
    line = (before + width + after) * lanes
    strides = [0] * len(conv.result.shape)
    strides[conv.form.axis], strides[columns.place], strides[-1] = line, lanes, 1
    strides[rows.place] = line * conv.form.blocks
    size = conv.result.element.bytes
    offset = begin // size + before * lanes
    view = View(nowhere, conv.result.element, conv.result.shape, tuple(strides), offset)
    space = -(-ring.rows * strides[rows.place] * size // _ALIGNED) * _ALIGNED
    return _Between(ring, view, line, before, after, begin, space)


def _elsewhere(parts: Parts, source: View | None, result: View | None) -> Parts:
    """A convolution that reads or writes such rows. Which of them windows read, the ring says."""
    if source is not None:
        rows, columns = parts.axes
        axes = (replace(rows, before=0, dilation=1), columns)
        parts = replace(parts, source=ConvInput(source, parts.source.block), axes=axes)
    return parts if result is None else replace(parts, result=result)


def _placed(argument: Argument) -> Argument:
    """Instead of an address in scratch memory, where that is there."""
    return argument.offset if isinstance(argument, Address) and argument.storage == NOWHERE else argument
