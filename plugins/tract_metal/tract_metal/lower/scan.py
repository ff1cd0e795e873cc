"""Loops over the slices of a tensor, written out when a function is recorded for certain sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mlx.core as mx

from tract_core.ops.scan import FrozenScan, FullOutput, Scan, ScannedInput, StateInput
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_core.runtime.plan import TypedFrozenSimpleState
from tract_metal.elements import element_of
from tract_metal.lower.bodies import Body, Unfit
from tract_metal.site import Keeping, Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Scan)
def lower_scan(op: Scan, site: Site) -> Callable[..., list[mx.array]] | Keeping | str:
    """As many times its body as there are slices."""
    if op.skip:
        return "iterations that are not run are counted by the host"
    try:
        body = Body.of(op.body, op.sizes(site.facts))
    except Unfit as error:
        return str(error)
    if not op.state_inputs or op.reset_every_turn or op.external_state:
        return lambda *inputs: _Loop(op, site, body, inputs).outputs()

    def step(kept: Sequence[mx.array] | None, *inputs: mx.array) -> tuple[list[mx.array], list[mx.array]]:
        loop = _Loop(op, site, body, inputs, kept)
        return loop.outputs(), loop.state

    return Keeping(step, _frozen, lambda found: found.state)


def _frozen(kept: Sequence[Array]) -> FrozenScan:
    return FrozenScan(0, tuple(kept), TypedFrozenSimpleState({}))


class _Loop:
    """A loop while it is written out. ``given``: what each iteration gave; ``kept``: the state of the turn before."""

    def __init__(
        self,
        op: Scan,
        site: Site,
        body: Body,
        inputs: Sequence[mx.array],
        kept: Sequence[mx.array] | None = None,
    ) -> None:
        self.op, self.site, self.body, self.inputs = op, site, body, inputs
        self.given: list[list[mx.array]] = []
        self.state = [inputs[slot] for slot in op.state_inputs]
        if kept is not None:
            if any(before.shape != now.shape for before, now in zip(kept, self.state, strict=True)):
                site.refuse_where(mx.array(True))
            else:
                self.state = list(kept)

    def outputs(self) -> list[mx.array]:
        """Those of the loop, by slot."""
        for iteration in range(int(self.op.iterations(self.site.facts))):
            found = self.body.recorded(self.site, self._seen(iteration))
            self.state = [found[slot] for slot in self.op.state_outputs]
            self.given.append(found)
        outputs: dict[int, mx.array] = {}
        for slot, mapping in enumerate(self.op.outputs):
            if mapping.full is not None:
                outputs[mapping.full.slot] = self._joined(slot, mapping.full)
            if mapping.last is not None:
                outputs[mapping.last] = self._last(slot, mapping.last)
        return [outputs[slot] for slot in range(len(outputs))]

    def _seen(self, iteration: int) -> list[mx.array]:
        states = iter(self.state)
        found = list[mx.array]()
        for mapping, array in zip(self.op.inputs, self.inputs, strict=True):
            if isinstance(mapping, StateInput):
                found.append(next(states))
            elif isinstance(mapping, ScannedInput):
                found.append(_slice(array, mapping, iteration))
            else:
                found.append(array)
        return found

    def _joined(self, slot: int, full: FullOutput) -> mx.array:
        pieces = [one[slot] for one in self.given]
        if not pieces:
            return self._blank(full.slot)
        return mx.concatenate(pieces[::-1] if full.chunk < 0 else pieces, axis=full.axis)

    def _last(self, slot: int, last: int) -> mx.array:
        if slot in self.op.state_outputs:
            return self.state[self.op.state_outputs.index(slot)]
        return self.given[-1][slot] if self.given else self._blank(last)

    def _blank(self, slot: int) -> mx.array:
        kind = element_of(self.site.fact(self.site.outputs[slot]).datum_type)
        assert kind is not None, "it was looked at"
        return mx.zeros(self.site.shape(slot), kind)


def _slice(array: mx.array, mapping: ScannedInput, iteration: int) -> mx.array:
    """That of an iteration; zeros stand for what is missing where the axis ends, or begins when it goes backward."""
    chunk, lead = abs(mapping.chunk), (slice(None),) * mapping.axis
    size = array.shape[mapping.axis]
    start = iteration * chunk if mapping.chunk > 0 else size - (iteration + 1) * chunk
    part = array[(*lead, slice(max(start, 0), min(start + chunk, size)))]
    if part.shape[mapping.axis] == chunk:
        return part
    ends = (max(-start, 0), max(start + chunk - size, 0))
    return mx.pad(part, [ends if axis == mapping.axis else (0, 0) for axis in range(array.ndim)])
