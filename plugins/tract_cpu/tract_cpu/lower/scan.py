"""Loops over the slices of a tensor, as steps that are done again and again, on addresses that move.

A slice of a scanned input is read where it lies, and what iterations give is written to its slice of the whole. The
state lies in two places: an iteration reads it from one and writes it to the other, the next one the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tract_llvm.language.types import BOOL, INDEX, ElementType
from tract_llvm.program.keeping import Keeping
from tract_llvm.program.views import View

from tract_core.dims import product
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.ops.scan import FrozenScan, FullOutput, Scan, ScannedInput, StateInput, check_state
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.control import CONTROL, JumpPlan, SkipPlan
from tract_cpu.lower.bodies import (
    BodyTarget,
    Unfit,
    add_body,
    begin_loop,
    body_with,
    branch_step,
    done,
    inlined,
    jump_step,
    repeat,
)
from tract_cpu.program.arguments import arguments
from tract_cpu.program.places import Move, TensorPart
from tract_cpu.program.program import NativeStep, StepNumber
from tract_cpu.table import MOVES

ROWS = Rows()

_ALL = (1 << 63) - 1
"""More iterations than there ever are."""


@ROWS.row(MOVES, Scan)
def lower_scan(op: Scan, site: Site) -> str | None:
    """A loop of native steps, where all nodes of the body are native."""
    site.known_inputs()  # those that are only there in another form are brought into this one before the loop
    return inlined(site, lambda: _Scan(op, site).lower())


@frozen
class KeptLoop(Keeping):
    """What a loop keeps: whether a turn before left anything, then the state.

    ``counts``: whether how many iterations there were stands in front of the state.
    """

    counts: bool

    def frozen(self, tensors: Sequence[Array]) -> FrozenScan:
        """The number of iterations, and copies of the state."""
        begun, *kept = tensors
        if not begun:
            return FrozenScan(0, None, {})
        position = int(kept[0]) if self.counts else 0
        return FrozenScan(position, tuple(tensor.copy() for tensor in kept[self.counts :]) or None, {})

    def thaw(self, frozen: FrozenScan, tensors: Sequence[Array]) -> None:
        """As it was; a loop that keeps a state, and had none, begins."""
        begun, *kept = tensors
        content = [*([np.array(frozen.position)] if self.counts else []), *(frozen.state or ())]
        if len(content) != len(kept):
            return
        check_state([one.shape for one in content], [one.shape for one in kept])
        for target, source in zip(kept, content, strict=True):
            target[...] = source
        begun[...] = True


class _Scan:
    """A loop that is about to become steps."""

    def __init__(self, op: Scan, site: Site) -> None:
        """Raises Unfit where the host has to run the loop."""
        facts = site.facts()
        self.op, self.site, self.lowering = op, site, site.lowering
        self.keeps_state = bool(op.state_inputs) and not (op.reset_every_turn or op.external_state)
        self.keeps = self.keeps_state or (op.skip > 0 and not op.reset_every_turn)
        why = site.lowering.why_not_kept(facts) if self.keeps else None
        if why is not None:
            raise Unfit(why)
        try:
            self.body, self.count = body_with(op.body, op.sizes(facts)), op.iterations(facts)
        except FactError as error:
            raise Unfit(f"sizes do not fit: {error.problem}") from None
        self.inputs = site.known_inputs()
        self.number = len(site.lowering.draft.loops)
        self.outputs = site.results()
        self.states = [self._pair(slot) for slot in op.state_inputs]
        self.position = self._room(INDEX)
        self.begun: View | None = None
        """Whether the state was kept by a turn before."""

    def lower(self) -> None:
        """Add the steps. Raises Unfit."""
        lowering, op = self.lowering, self.op
        begin = len(lowering.steps)
        kept = self._begin_with()
        targets = self._targets()
        given = dict(zip(self.body.inputs, [self._seen(slot) for slot in range(len(self.inputs))], strict=True))
        begin_loop(lowering)
        jump = self._skip() if op.skip else None
        add_body(self.site, 0, self.body, given, targets)
        if jump is not None:
            lowering.steps[jump] = jump_step(len(lowering.steps))
        repeat(lowering, self.number, self.count)
        if kept and op.skip:
            self.lowering.copy(self.position, kept.pop(0))
        for place, slot in enumerate(op.state_outputs):
            last, pair = op.outputs[slot].last, self.states[place]
            state = pair.part(0, self.count - self.count // 2 * 2, 1).shaped(pair.shape[1:])
            assert state is not None  # a part without gaps
            for target in [*kept[place : place + 1], *([] if last is None else [self.outputs[last]])]:
                self.lowering.copy(state, target)
        if self.keeps:
            assert self.begun is not None  # it was made with the rest of what is kept
            self.lowering.copy(self._constant(np.ones((), np.bool_)), self.begun)
        done(self.site, "loop", begin, self.inputs, [(self.body, self.count)])

    # ---- state

    def _pair(self, slot: int) -> View:
        """Memory for a state twice, along a first axis."""
        shape = tuple(self.body.outlet_fact(self.body.inputs[slot]).shape)
        element = self.inputs[slot].element
        storage = self.lowering.room(product(shape) * (2 * element.bytes))
        return View.contiguous(storage, element, (2, *shape))

    def _place(self, pair: View, position: int) -> View:
        """The first of two places, or the second one, and in the next iteration the other one."""
        size, element = pair.strides[0], pair.element
        step = size * element.bytes * (1 - 2 * position)
        part = TensorPart(pair.storage, size * position, element.bytes, Move(self.number, step, back=True))
        return View.contiguous(self.lowering.draft.part(part), element, pair.shape[1:])

    def _begin_with(self) -> list[View]:
        """How many iterations there were, and the state, at first. Returns where they are kept, as far as they are."""
        zero = self._constant(np.zeros((), np.int64))
        held = [(zero, self.position, self.keeps)] if self.op.skip else []
        for place, slot in enumerate(self.op.state_inputs):
            source = self._in_full(slot)
            pair = self.states[place].part(0, 0, 1).shaped(source.shape)
            assert pair is not None  # a part without gaps
            held.append((source, pair, self.keeps_state))
        kept = self._kept([source for source, _, keeps in held if keeps])
        memory = iter(kept)
        for source, place, keeps in held:
            self.lowering.copy(next(memory) if keeps else source, place)
        return kept

    def _kept(self, sources: Sequence[View]) -> list[View]:
        """Memory that stays from turn to turn, which the first turn fills."""
        lowering = self.lowering
        if not sources:
            return []
        tensors = [(BOOL, ()), *((one.element, one.shape) for one in sources)]
        self.begun, *kept = lowering.keep(self.site.node.node, KeptLoop(counts=self.op.skip > 0), tensors)
        behind = StepNumber(len(lowering.steps) + 1 + len(kept))
        lowering.steps.append(branch_step(self.begun, behind, jumps=True))
        for source, place in zip(sources, kept, strict=True):
            lowering.copy(source, place)
        return kept

    def _skip(self) -> int:
        """An iteration that is skipped leaves the state alone. Returns where the jump over its body has to stand."""
        steps, skipped = self.lowering.steps, self._room(BOOL)
        plan, skip = SkipPlan(), min(self.op.skip, _ALL)
        given = arguments(plan, count=self.position.address, skipped=skipped.address, skip=skip)
        steps.append(NativeStep(plan, given, 1, (), (self.position.storage, skipped.storage)))
        body = StepNumber(len(steps) + 2 + len(self.states))
        steps.append(branch_step(skipped, body, jumps=False))
        for pair in self.states:
            self.lowering.copy(self._place(pair, 0), self._place(pair, 1))
        steps.append(NativeStep(JumpPlan(), (), CONTROL, (), ()))
        return len(steps) - 1

    # ---- inputs and outputs

    def _seen(self, slot: int) -> View:
        """What the body sees of an input."""
        mapping = self.op.inputs[slot]
        if isinstance(mapping, StateInput):
            return self._place(self.states[self.op.state_inputs.index(slot)], 0)
        if not isinstance(mapping, ScannedInput):
            return self.inputs[slot]
        chunk = abs(mapping.chunk)
        whole = self._whole_slices(self.inputs[slot], mapping.axis, mapping.chunk)
        return self._slice(whole, mapping.axis, chunk, backward=mapping.chunk < 0)

    def _in_full(self, slot: int) -> View:
        """An input, with sizes as the body says them."""
        shape = tuple(self.body.outlet_fact(self.body.inputs[slot]).shape)
        return replace(self.inputs[slot], shape=shape)

    def _slice(self, whole: View, axis: int, chunk: int, *, backward: bool) -> View:
        """The slice of a tensor that belongs to the iteration."""
        start = whole.shape[axis] - chunk if backward else 0
        step = whole.strides[axis] * (whole.element.bytes * (-chunk if backward else chunk))
        slice_ = whole.part(axis, start, chunk)
        part = TensorPart(whole.storage, slice_.offset, whole.element.bytes, Move(self.number, step))
        return replace(slice_, storage=self.lowering.draft.part(part), offset=0)

    def _whole_slices(self, view: View, axis: int, chunk: int) -> View:
        """The tensor with zeros where the last slice is not complete."""
        lacks = self.count * abs(chunk) - view.shape[axis]
        if lacks == 0:
            return view
        shape = list(view.shape)
        shape[axis] = shape[axis] + lacks
        storage = self.lowering.room(product(shape) * view.element.bytes)
        whole = View.contiguous(storage, view.element, shape)
        begin, size = (0, view.shape[axis]) if chunk > 0 else (lacks, view.shape[axis])
        self.lowering.copy(view, whole.part(axis, begin, size))
        self._clear(whole.part(axis, size if chunk > 0 else 0, lacks))
        return whole

    def _targets(self) -> list[BodyTarget]:
        """Where the body writes its outputs."""
        found: list[BodyTarget] = []
        states = {slot: self._place(self.states[place], 1) for place, slot in enumerate(self.op.state_outputs)}
        for slot, (outlet, mapping) in enumerate(zip(self.body.outputs, self.op.outputs, strict=True)):
            if slot in states:
                found.append(BodyTarget(outlet, states[slot]))
            if mapping.full is not None:
                if self.op.skip:
                    self._clear(self.outputs[mapping.full.slot])
                found.append(BodyTarget(outlet, self._joined(mapping.full)))
            if mapping.last is not None and slot not in states:
                found.append(BodyTarget(outlet, self.outputs[mapping.last]))
                if self.op.skip or not (isinstance(self.count, int) and self.count):
                    self._clear(self.outputs[mapping.last])
        return found

    def _joined(self, full: FullOutput) -> View:
        whole, chunk = self.outputs[full.slot], abs(full.chunk)
        return self._slice(whole, full.axis, chunk, backward=full.chunk < 0)

    def _clear(self, target: View) -> None:
        """Fill with zeros."""
        zero = self._constant(np.zeros((), f"u{target.element.bytes}"))
        self.lowering.copy(zero.stretched(target.shape), target.as_bits())

    def _room(self, element: ElementType) -> View:
        """Memory for one number."""
        return View.contiguous(self.lowering.room(element.bytes), element, ())

    def _constant(self, array: np.ndarray) -> View:
        found = self.lowering.constant(array)
        assert found is not None  # kernels know integers and booleans
        return found
