"""Loops over the slices of a tensor, as steps that are done again and again, on addresses that move.

A slice of a scanned input is read where it lies, and what iterations give is written to its slice of the whole. The
state lies in two places: an iteration reads it from one and writes it to the other, the next one the other way round.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tract_core.dims import product
from tract_core.errors import FactError
from tract_core.ops.scan import FullOutput, Scan, ScannedInput, StateInput
from tract_core.plugins.tables import Rows
from tract_cpu.kernels.control import CONTROL, BranchPlan
from tract_cpu.language.types import BOOL
from tract_cpu.lower.bodies import Target, Unfit, add_body, begin_loop, body_with, done, inlined, repeat
from tract_cpu.lower.lowering import MOVES, Site
from tract_cpu.lower.places import Move, Part
from tract_cpu.lower.program import Kept, NativeStep, StepNumber
from tract_cpu.lower.views import Kind, Storage, View

ROWS = Rows()


@ROWS.row(MOVES, Scan)
def lower_scan(op: Scan, site: Site) -> str | None:
    """A loop of native steps, where all nodes of the body are native."""
    site.known_inputs()  # those that are only there in another form are brought into this one before the loop
    return inlined(site, lambda: _Scan(op, site).lower())


class _Scan:
    """A loop that is about to become steps."""

    def __init__(self, op: Scan, site: Site) -> None:
        """Raises Unfit where the host has to run the loop."""
        facts = site.facts()
        self.op, self.site, self.lowering = op, site, site.lowering
        self.keeps = bool(op.state_inputs) and not (op.reset_every_turn or op.external_state)
        if op.skip:
            raise Unfit("native loops do not skip iterations yet")
        if self.keeps and site.lowering.is_body:
            raise Unfit("it keeps its state between turns, inside of a body")
        symbols = frozenset[str]().union(*(fact.shape.symbols() for fact in facts))
        if self.keeps and not symbols <= site.lowering.given_at_begin:
            raise Unfit("it keeps a state whose sizes come up in the middle of the run")
        try:
            self.body, self.count = body_with(op.body, op.sizes(facts)), op.iterations(facts)
        except FactError as error:
            raise Unfit(f"sizes do not fit: {error.problem}") from None
        self.inputs = site.known_inputs()
        self.number = len(site.lowering.draft.loops)
        self.outputs = site.results()
        self.states = [self._pair(slot) for slot in op.state_inputs]

    def lower(self) -> None:
        """Add the steps. Raises Unfit."""
        lowering, op = self.lowering, self.op
        begin = len(lowering.steps)
        kept = self._begin_with()
        targets = self._targets()
        given = dict(zip(self.body.inputs, [self._seen(slot) for slot in range(len(self.inputs))], strict=True))
        begin_loop(lowering)
        add_body(self.site, 0, self.body, given, targets)
        repeat(lowering, self.number, self.count)
        for place, slot in enumerate(op.state_outputs):
            last, pair = op.outputs[slot].last, self.states[place]
            state = pair.part(0, self.count - self.count // 2 * 2, 1).shaped(pair.shape[1:])
            assert state is not None  # a part without gaps
            for target in [*kept[place : place + 1], *([] if last is None else [self.outputs[last]])]:
                self.lowering.copy(state, target)
        if kept:
            self.lowering.copy(self._constant(np.ones((), np.bool_)), self._begun())
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
        part = Part(pair.storage, size * position, element.bytes, Move(self.number, step, back=True))
        return View.contiguous(self.lowering.part(part), element, pair.shape[1:])

    def _begin_with(self) -> list[View]:
        """What the state is at first. Returns the memory where it is kept from turn to turn, if it is."""
        lowering, kept = self.lowering, list[View]()
        if self.keeps:
            number = lowering.kept_so_far()
            tensors = tuple((pair.element, pair.shape[1:]) for pair in self.states)
            lowering.draft.kept.append(Kept(self.site.node.node, number, tensors))
            for place, (element, shape) in enumerate(tensors, start=number + 1):
                kept.append(View.contiguous(Storage(Kind.KEPT, place), element, shape))
            behind = StepNumber(len(lowering.steps) + 1 + len(kept))
            lowering.steps.append(NativeStep(BranchPlan(jumps=True), (self._begun().address, behind), CONTROL, (), ()))
        for place, slot in enumerate(self.op.state_inputs):
            source = self._in_full(slot)
            if kept:
                self.lowering.copy(source, kept[place])
        for place, slot in enumerate(self.op.state_inputs):
            source = kept[place] if kept else self._in_full(slot)
            pair = self.states[place].part(0, 0, 1).shaped(source.shape)
            assert pair is not None  # a part without gaps
            self.lowering.copy(source, pair)
        return kept

    def _begun(self) -> View:
        """Whether the state was kept by a turn before."""
        return View.contiguous(Storage(Kind.KEPT, self.lowering.draft.kept[-1].first), BOOL, ())

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
        part = Part(whole.storage, slice_.offset, whole.element.bytes, Move(self.number, step))
        return replace(slice_, storage=self.lowering.part(part), offset=0)

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

    def _targets(self) -> list[Target]:
        """Where the body writes its outputs."""
        found: list[Target] = []
        states = {slot: self._place(self.states[place], 1) for place, slot in enumerate(self.op.state_outputs)}
        for slot, (outlet, mapping) in enumerate(zip(self.body.outputs, self.op.outputs, strict=True)):
            if slot in states:
                found.append(Target(outlet, states[slot]))
            if mapping.full is not None:
                found.append(Target(outlet, self._joined(mapping.full)))
            if mapping.last is not None and slot not in states:
                found.append(Target(outlet, self.outputs[mapping.last]))
                if not (isinstance(self.count, int) and self.count):
                    self._clear(self.outputs[mapping.last])
        return found

    def _joined(self, full: FullOutput) -> View:
        whole, chunk = self.outputs[full.slot], abs(full.chunk)
        return self._slice(whole, full.axis, chunk, backward=full.chunk < 0)

    def _clear(self, target: View) -> None:
        """Fill with zeros."""
        zero = self._constant(np.zeros((), f"u{target.element.bytes}"))
        self.lowering.copy(zero.stretched(target.shape), target.as_bits())

    def _constant(self, array: np.ndarray) -> View:
        found = self.lowering.constant(array)
        assert found is not None  # kernels know integers and booleans
        return found
