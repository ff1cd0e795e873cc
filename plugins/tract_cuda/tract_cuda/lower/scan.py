"""Loops over the slices of a tensor: the launches of the body, done again and again on addresses that move.

A slice of a scanned input is read where it lies, and what iterations give is written to its slice of the whole, where
that can be. The state lies in two places: an iteration reads it from one and writes it to the other, the next one the
other way round. A graph has the launches of all iterations, so that an iteration costs what its kernels do; nothing of
that depends on how many there are when the model is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from tract_llvm.fuse.nest import Unknown
from tract_llvm.language.types import U8, numpy_type
from tract_llvm.program.keeping import Keeping
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, dim_max, dim_min, product, symbol
from tract_core.frozen import frozen
from tract_core.ops.scan import FrozenScan, FullOutput, Scan, ScannedInput, StateInput, check_state
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_core.runtime.plan import TypedFrozenSimpleState
from tract_cuda.language.arch import ACCESS_BYTES
from tract_cuda.lower.bodies import Body, Unfit
from tract_cuda.lower.recurrence import LoopSlices, RecurrentCell, recurrence_of
from tract_cuda.lowering import Lowering, Site
from tract_cuda.program import count_name
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Scan)
def lower_scan(op: Scan, site: Site) -> str | None:
    """A loop of launches, where all nodes of the body have kernels."""
    loop = _Loop(op, site)
    why = site.lowering.why_not_kept(loop.facts) if loop.keeps else None
    if why is not None:
        return why
    try:
        with site.lowering.attempt():
            loop.add()
    except Unfit as error:
        return str(error)
    return None


@frozen
class StatePair:
    """A state twice: the first place is read in even iterations and written in odd ones, the second the other way.

    ``apart``: how far the second one lies behind the first, in elements.
    """

    first: View
    apart: Dim

    @staticmethod
    def of(lowering: Lowering, like: View) -> StatePair:
        """New memory for a state. Both places begin where vectors may."""
        lanes = max(ACCESS_BYTES // like.element.bytes, 1)
        apart = ceil_div(product(like.shape), lanes) * lanes
        room = lowering.scratch(U8, (2 * apart * like.element.bytes,))
        return StatePair(View.contiguous(room.storage, like.element, like.shape), apart)

    def before(self, iteration: Dim) -> View:
        """The state that an iteration reads."""
        return replace(self.first, offset=self.apart * (iteration % 2))

    def behind(self, iteration: Dim) -> View:
        """The state that an iteration gives."""
        return self.before(iteration + 1)


@frozen
class KeptScan(Keeping):
    """What a loop keeps: whether a turn before left anything, and the state.

    ``counts``: whether how many iterations there were, as far as some are skipped, stands in front of the state.
    """

    counts: bool

    def frozen(self, tensors: Sequence[Array]) -> FrozenScan:
        """The number of iterations, and copies of the state."""
        begun, *kept = tensors
        nothing = TypedFrozenSimpleState({})
        if not begun:
            return FrozenScan(0, None, nothing)
        position = int(kept[0]) if self.counts else 0
        return FrozenScan(position, tuple(tensor.copy() for tensor in kept[self.counts :]) or None, nothing)

    def thaw(self, frozen: FrozenScan, tensors: Sequence[Array]) -> None:
        """As it was; a loop that keeps a state, and had none, begins."""
        begun, *kept = tensors
        content = [*([np.array(frozen.position)] if self.counts else []), *(frozen.state or ())]
        if len(content) != len(kept):
            return
        check_state([one.shape for one in content], [one.shape for one in kept])
        for target, source in zip(kept, content, strict=True):
            target[...] = source
        begun[...] = 1


class _Loop:
    """A loop that is about to become launches."""

    def __init__(self, op: Scan, site: Site) -> None:
        """Raises FactError where sizes do not fit."""
        self.op, self.site, self.lowering = op, site, site.lowering
        self.facts = [site.lowering.model.outlet_fact(outlet) for outlet in site.node.inputs]
        self.count, self.sizes = op.iterations(self.facts), op.sizes(self.facts)
        self.keeps_state = bool(op.state_inputs) and not (op.reset_every_turn or op.external_state)
        self.keeps_count = op.skip > 0 and not op.reset_every_turn
        self.begun, self.done = (symbol(count_name(site.node.node, place)) for place in range(2))
        left = dim_max(op.skip - self.done, 0) if self.keeps_count else op.skip
        self.skipped: Dim = dim_min(left, self.count) if op.skip else 0

    @property
    def keeps(self) -> bool:
        """Whether anything stays for the next turn."""
        return self.keeps_state or self.keeps_count

    def add(self) -> None:
        """Add the launches. Raises Unfit."""
        self.inputs = [self._whole(slot, view) for slot, view in enumerate(self.site.inputs())]
        self.results = self.site.results()
        self._clear_what_stays()
        if not self._in_one_kernel():
            self._in_launches()

    def _in_one_kernel(self) -> bool:
        """Add one kernel for all iterations, if there is one for such bodies. Returns whether there is."""
        if self.op.skip or any(isinstance(one, ScannedInput) and abs(one.chunk) != 1 for one in self.op.inputs):
            return False
        states = list(self.op.state_inputs)
        others = {slot: self._slices(slot) for slot in range(len(self.inputs)) if slot not in states}
        try:
            with self.lowering.attempt():
                body = self.op.body.substitute(self.sizes)
                cell = RecurrentCell(self.site, body, others, states)
                feeds = [body.outputs[slot] for slot in self.op.state_outputs]
                wanted = [(body.outputs[slot], one) for slot, one in self._wanted()]
                found = recurrence_of(self.site, cell, feeds, wanted)
        except Unknown:
            return False
        if found is None:
            return False
        given = [self.inputs[slot] for slot in states]
        first, kept = self._begin_with(given)
        last = [self._last_of(slot, one) for slot, one in zip(self.op.state_outputs, given, strict=True)]
        found.launch(self.site, self.count, first, last)
        for view, place in zip(last, kept, strict=False):
            self.lowering.keep_at_end(view, place)
        return True

    def _slices(self, slot: int) -> LoopSlices:
        """What iterations see of an input that is no state."""
        mapping, whole = self.op.inputs[slot], self.inputs[slot]
        return self._along(whole, mapping) if isinstance(mapping, ScannedInput) else LoopSlices(whole, 0)

    def _along(self, whole: View, mapping: ScannedInput | FullOutput) -> LoopSlices:
        step = whole.strides[mapping.axis] * (1 if mapping.chunk > 0 else -1)
        return LoopSlices(self._slice(whole, mapping, 0), step)

    def _wanted(self) -> Iterator[tuple[int, LoopSlices]]:
        """Where each iteration writes what it gives, by the slots of outputs of the body."""
        for slot, mapping in enumerate(self.op.outputs):
            if mapping.full is not None:
                yield slot, self._along(self.results[mapping.full.slot], mapping.full)
            if mapping.last is not None and not mapping.state:
                yield slot, LoopSlices(self.results[mapping.last], 0)

    def _last_of(self, slot: int, like: View) -> View:
        """Where the last state goes that the body gives in a slot."""
        last = self.op.outputs[slot].last
        return self.lowering.scratch(like.element, like.shape) if last is None else self.results[last]

    def _in_launches(self) -> None:
        """Add the launches of the body, again and again. Raises Unfit."""
        self.states = {slot: StatePair.of(self.lowering, self.inputs[slot]) for slot in self.op.state_inputs}
        given = [self.inputs[slot] for slot in self.op.state_inputs]
        first, kept = self._begin_with(given)
        for source, pair in zip(first, self.states.values(), strict=True):
            self._copy(source, pair.before(0))
        runs = self.count - self.skipped
        with self.lowering.repeated(runs, self.site.group.nodes) as run:
            self._iteration(run, run + self.skipped)
        for slot, start in zip(self.op.state_outputs, self.op.state_inputs, strict=True):
            last = self.op.outputs[slot].last
            if last is not None:
                self._copy(self.states[start].before(runs), self.results[last])
        for pair, place in zip(self.states.values(), kept, strict=False):
            self.lowering.keep_at_end(pair.before(runs), place)

    def _begin_with(self, given: Sequence[View]) -> tuple[Sequence[View], Sequence[View]]:
        """The state as it came in, or as a turn before left it. Returns also where it is kept, if it is."""
        kept = self._kept(given) if self.keeps else []
        if not kept:
            return given, kept
        first = [self.lowering.scratch(one.element, one.shape) for one in given]
        for count, sources in ((1 - self.begun, given), (self.begun, kept)):
            with self.lowering.repeated(count, self.site.group.nodes):
                for source, target in zip(sources, first, strict=True):
                    self._copy(source, target)
        return first, kept

    def _kept(self, given: Sequence[View]) -> list[View]:
        """Memory for the state, where it stays, and the count of iterations, as far as it matters."""
        counts = [1, dim_min(self.done + self.count, self.op.skip)] if self.keeps_count else [1]
        tensors = [(one.element, one.shape) for one in given] if self.keeps_state else []
        return self.lowering.keep(self.site.node.node, KeptScan(self.keeps_count), tensors, counts)

    def _iteration(self, run: Dim, iteration: Dim) -> None:
        """One iteration, ``run`` of those that are not skipped."""
        seen = [self._seen(slot, run, iteration) for slot in range(len(self.inputs))]
        targets = self._targets(run, iteration)
        body = Body.of(self.site, self.op.body, self.sizes, seen, repeated=True)
        inside = body.inside(self.site, {slot: views[0] for slot, views in targets.items() if views})
        inside.add()
        inside.deliver(targets)

    def _seen(self, slot: int, run: Dim, iteration: Dim) -> View:
        """What the body sees of an input."""
        mapping, whole = self.op.inputs[slot], self.inputs[slot]
        if isinstance(mapping, StateInput):
            return self.states[slot].before(run)
        return self._slice(whole, mapping, iteration) if isinstance(mapping, ScannedInput) else whole

    def _targets(self, run: Dim, iteration: Dim) -> Mapping[int, Sequence[View]]:
        """Where what the body gives is wanted, by the slots of its outputs."""
        found: dict[int, list[View]] = {slot: [] for slot in range(len(self.op.outputs))}
        for slot, start in zip(self.op.state_outputs, self.op.state_inputs, strict=True):
            found[slot].append(self.states[start].behind(run))
        for slot, mapping in enumerate(self.op.outputs):
            if mapping.full is not None:
                found[slot].append(self._slice(self.results[mapping.full.slot], mapping.full, iteration))
            if mapping.last is not None and not mapping.state:
                found[slot].append(self.results[mapping.last])
        return found

    def _slice(self, whole: View, mapping: ScannedInput | FullOutput, iteration: Dim) -> View:
        """That of an iteration; the last one belongs to the first where the chunk is negative."""
        chunk = abs(mapping.chunk)
        start = iteration * chunk if mapping.chunk > 0 else whole.shape[mapping.axis] - (iteration + 1) * chunk
        return whole.part(mapping.axis, start, chunk)

    def _whole(self, slot: int, view: View) -> View:
        """An input of the sizes that the body says, with zeros where its last slice is not complete."""
        mapping = self.op.inputs[slot]
        if not isinstance(mapping, ScannedInput):
            fact = self.op.body.outlet_fact(self.op.body.inputs[slot]).substitute(self.sizes)
            return replace(view, shape=tuple(fact.shape))
        axis, size = mapping.axis, view.shape[mapping.axis]
        lacks = self.count * abs(mapping.chunk) - size
        if lacks == 0:
            return view
        whole = self.lowering.scratch(view.element, (*view.shape[:axis], size + lacks, *view.shape[axis + 1 :]))
        self._copy(view, whole.part(axis, 0 if mapping.chunk > 0 else lacks, size))
        self._clear(whole.part(axis, size if mapping.chunk > 0 else 0, lacks))
        return whole

    def _clear_what_stays(self) -> None:
        """Have zeros where no iteration writes, as it is skipped, or as there is none."""
        may_be_none = bool(self.op.skip) or not (isinstance(self.count, int) and self.count > 0)
        for mapping in self.op.outputs:
            if mapping.full is not None and self.op.skip:
                self._clear(self.results[mapping.full.slot])
            if mapping.last is not None and not mapping.state and may_be_none:
                self._clear(self.results[mapping.last])

    def _clear(self, target: View) -> None:
        zero = self.lowering.constant(np.zeros((), numpy_type(target.as_bits().element)))
        self._copy(zero.stretched(target.shape), target)

    def _copy(self, source: View, target: View) -> None:
        self.lowering.copy(source, target, self.site.group.nodes)
