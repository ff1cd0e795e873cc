"""Loops over the slices of a tensor, written out: the launches of the body once for every slice.

What an iteration reads is copied to where the body reads it, and what it gives to its slice of the whole. All of that
is one graph, so that an iteration costs what its kernels do.
"""

from __future__ import annotations

from typing import Final

from tract_llvm.program.views import View

from tract_core.ops.scan import FullOutput, Scan, ScannedInput
from tract_core.plugins.tables import Rows
from tract_cuda.lower.bodies import Body, Inside, Unfit
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()

_MOST: Final = 512
"""Iterations that are written out."""


@ROWS.row(CUDA, Scan)
def lower_scan(op: Scan, site: Site) -> str | None:
    """As many times its body as there are slices, where that is known, and no state stays for the next turn."""
    facts = [site.lowering.model.outlet_fact(outlet) for outlet in site.node.inputs]
    why = _why_not(op, site)
    if why is not None:
        return why
    try:
        body = Body.of(site, op.body, op.sizes(facts))
    except Unfit as error:
        return str(error)
    _Loop(op, site, body.inside(site)).add(int(op.iterations(facts)))
    return None


def _why_not(op: Scan, site: Site) -> str | None:
    facts = [site.lowering.model.outlet_fact(outlet) for outlet in site.node.inputs]
    count = op.iterations(facts)
    if not isinstance(count, int) or not 0 < count <= _MOST:
        return f"loops are written out where they have a known number of iterations, up to {_MOST}"
    if op.skip or (op.state_inputs and not (op.reset_every_turn or op.external_state)):
        return "there is no place on the device for a state that stays from turn to turn"
    scanned = ((one, fact) for one, fact in zip(op.inputs, facts, strict=True) if isinstance(one, ScannedInput))
    if any(fact.shape[one.axis] != count * abs(one.chunk) for one, fact in scanned):
        return "the last slice is not a whole one"
    return None


class _Loop:
    """A loop that is about to become launches. ``seen``: where the body reads its inputs."""

    def __init__(self, op: Scan, site: Site, inside: Inside) -> None:
        self.op, self.site, self.inside = op, site, inside
        self.inputs, self.results = site.inputs(), site.results()
        self.seen = [self._seen(slot) for slot in range(len(self.inputs))]
        self.given = [inside.output(slot, self.seen) for slot in range(len(op.outputs))]

    def add(self, count: int) -> None:
        """Add the launches of all iterations."""
        for slot, mapping in enumerate(self.op.inputs):
            if not isinstance(mapping, ScannedInput):
                self._copy(self.inputs[slot], self.seen[slot])
        for iteration in range(count):
            self._read(iteration)
            self.inside.add()
            self._write(iteration, last=iteration == count - 1)
            if iteration < count - 1:
                self._feed_back()

    def _read(self, iteration: int) -> None:
        """Have the slices that an iteration reads where the body reads them."""
        for slot, mapping in enumerate(self.op.inputs):
            if isinstance(mapping, ScannedInput):
                self._copy(_slice(self.inputs[slot], mapping, iteration), self.seen[slot])

    def _write(self, iteration: int, *, last: bool) -> None:
        """Have what an iteration gave in its slices of the whole, and what the last one gave where only that counts."""
        for slot, mapping in enumerate(self.op.outputs):
            if mapping.full is not None:
                self._copy(self.given[slot], _slice(self.results[mapping.full.slot], mapping.full, iteration))
            if mapping.last is not None and last:
                self._copy(self.given[slot], self.results[mapping.last])

    def _seen(self, slot: int) -> View:
        """Where the body reads an input; some memory where it reads none of it, as it may give it again."""
        found = self.inside.input(slot)
        fact = self.inside.body.model.outlet_fact(self.inside.body.model.inputs[slot])
        return found or self.site.lowering.scratch(self.inputs[slot].element, tuple(fact.shape))

    def _feed_back(self) -> None:
        """What the body gave becomes the state; states that it exchanges go by way of other memory."""
        pairs = list(zip(self.op.state_outputs, self.op.state_inputs, strict=True))
        states = {self.seen[start].storage for _, start in pairs}
        moved: list[tuple[View, View]] = []
        for feed, start in pairs:
            given, state = self.given[feed], self.seen[start]
            if given == state:
                continue
            if given.storage in states:
                aside = self.site.lowering.scratch(given.element, given.shape)
                self._copy(given, aside)
                given = aside
            moved.append((given, state))
        for given, state in moved:
            self._copy(given, state)

    def _copy(self, source: View, target: View) -> None:
        self.site.lowering.copy(source, target, self.site.group.nodes)


def _slice(whole: View, mapping: ScannedInput | FullOutput, iteration: int) -> View:
    """That of an iteration; the last one belongs to the first where the chunk is negative."""
    chunk = abs(mapping.chunk)
    start = iteration * chunk
    if mapping.chunk < 0:
        start = whole.shape[mapping.axis] - (iteration + 1) * chunk
    return whole.part(mapping.axis, start, chunk)
