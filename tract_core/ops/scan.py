"""Loops over the slices of a tensor: a body that runs once per slice and hands state from one run to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tract_core.dims import Dim, bind, ceil_div, evaluate
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.bodies import (
    OpWithBodies,
    body_cost,
    from_outside,
    keeps_state,
    map_bodies,
    may_fit,
    own_symbols,
    sizes_outside,
)
from tract_core.model.conditions import may_equal
from tract_core.model.connections import axes_of_model
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.model.typed import TypedModel
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class FullInput:
    """The body sees the whole tensor, the same in every iteration."""


@frozen
class StateInput:
    """The tensor given is the value at the start; then the body sees what it gave in the iteration before."""


@frozen
class ScannedInput:
    """The body sees ``abs(chunk)`` positions of ``axis``, a new slice per iteration: the last one first if negative.

    Where the axis is not a multiple of the chunk, zeros stand for what is missing in the last slice.
    """

    axis: int
    chunk: int = 1


InputMapping = FullInput | StateInput | ScannedInput


@frozen
class FullOutput:
    """What the iterations give, joined along ``axis``, as output ``slot`` of the loop.

    ``abs(chunk)`` is the size of the axis in the body; a negative chunk puts the first iteration last.
    """

    slot: int
    axis: int
    chunk: int = 1


@frozen
class OutputMapping:
    """What becomes of one output of the body: fed back as state, joined, given as a last value, or several of these."""

    state: bool = False
    full: FullOutput | None = None
    last: int | None = None


@frozen
class Scan(OpWithBodies):
    """Run ``body`` once for each slice of the scanned inputs.

    ``inputs``: how each input of the loop reaches the input of the body in the same place. ``outputs``: what becomes
    of each output of the body; the state outputs feed the state inputs, in order. There are as many iterations as the
    first scanned input has slices, counting one that is not complete.

    ``skip``: that many iterations at the start are not run. They leave the state alone and give zeros; a last value
    is then the state, or zeros for an output that is none.

    The state is kept between the turns of a running model, so that a long tensor may be given in pieces (``skip``
    then counts over all pieces). With ``reset_every_turn``, every turn starts afresh, inside the body too. With
    ``external_state``, the caller hands the state from turn to turn: each turn starts from the state inputs.
    """

    body: TypedModel
    inputs: tuple[InputMapping, ...]
    outputs: tuple[OutputMapping, ...]
    skip: int = 0
    reset_every_turn: bool = False
    external_state: bool = False

    @property
    def keeps(self) -> bool:
        """Whether the next turn goes on: with the state, with how many iterations there were, or with the body's."""
        goes_on = bool(self.state_inputs) and not self.external_state
        return not self.reset_every_turn and (goes_on or self.skip > 0 or keeps_state(self.body))

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Facts of joined outputs and last values, by slot. Raises FactError when inputs and body do not fit."""
        arity(self, inputs, len(self.inputs))
        outside = self.sizes(inputs)
        self._check_outputs(outside)
        iterations = self.iterations(inputs)
        found: dict[int, TypedFact] = {}
        for outlet, mapping in zip(self.body.outputs, self.outputs, strict=True):
            fact = self.body.outlet_fact(outlet).substitute(outside).without_value()
            if mapping.full is not None:
                axis, shape = mapping.full.axis, list(fact.shape)
                shape[axis] = shape[axis] * iterations
                found[mapping.full.slot] = fact.with_shape(shape)
            if mapping.last is not None:
                found[mapping.last] = fact
        slots = sorted(slot for mapping in self.outputs for slot in _slots(mapping))
        if slots != list(range(len(slots))):
            raise FactError(f"Scan: outputs must fill slots 0, 1, ... once each, found {slots}")
        return tuple(found[slot] for slot in slots)

    def iterations(self, inputs: Sequence[TypedFact]) -> Dim:
        """How often the body runs, iterations that are skipped included. Raises FactError when inputs disagree."""
        counts: list[Dim] = [
            ceil_div(fact.shape[mapping.axis], abs(mapping.chunk))
            for mapping, fact in zip(self.inputs, inputs, strict=True)
            if isinstance(mapping, ScannedInput)
        ]
        if not counts:
            raise FactError("Scan: at least one input must be scanned, as it says how many iterations there are")
        if any(not may_equal(count, counts[0]) for count in counts):
            found = ", ".join(map(str, counts))
            raise FactError(f"Scan: the scanned inputs want different numbers of iterations: {found}")
        return counts[0]

    @property
    def state_inputs(self) -> tuple[int, ...]:
        """The inputs that give the state at the start."""
        return tuple(slot for slot, mapping in enumerate(self.inputs) if isinstance(mapping, StateInput))

    @property
    def state_outputs(self) -> tuple[int, ...]:
        """The outputs of the body that are fed back, in the order of `state_inputs`."""
        return tuple(slot for slot, mapping in enumerate(self.outputs) if mapping.state)

    def sizes(self, inputs: Sequence[TypedFact]) -> dict[str, Dim]:
        """What the symbols of the body are outside. Raises FactError when an input does not fit the body."""
        body = self.body
        if len(body.inputs) != len(inputs) or len(body.outputs) != len(self.outputs):
            raise FactError(
                f"Scan: the body has {len(body.inputs)} inputs and {len(body.outputs)} outputs, "
                f"{len(inputs)} and {len(self.outputs)} are mapped"
            )
        outside: dict[str, Dim] = {}
        for slot, (mapping, fact) in enumerate(zip(self.inputs, inputs, strict=True)):
            seen = _slice_fact(mapping, fact, slot)
            found = sizes_outside(body, slot, seen, outside)
            if found is None:
                wanted = body.outlet_fact(body.inputs[slot])
                raise FactError(f"Scan: input {slot} ({_name(body, slot)!r}) gives the body {seen}, it wants {wanted}")
            outside = found
        return outside

    def _check_outputs(self, outside: Mapping[str, Dim]) -> None:
        body = self.body
        starts, feeds = self.state_inputs, self.state_outputs
        if len(starts) != len(feeds):
            raise FactError(f"Scan: {len(starts)} state inputs, but {len(feeds)} outputs of the body are fed back")
        for start, feed in zip(starts, feeds, strict=True):
            before = body.outlet_fact(body.inputs[start]).substitute(outside)
            after = body.outlet_fact(body.outputs[feed]).substitute(outside)
            if not may_fit(after, before):
                raise FactError(f"Scan: the state {_name(body, start)!r} is {before}, the body gives {after} back")
        for slot, mapping in enumerate(self.outputs):
            if mapping.full is not None:
                fact = body.outlet_fact(body.outputs[slot])
                _check_chunk(mapping.full.axis, mapping.full.chunk, fact, f"output {slot} of the body")


def _name(body: TypedModel, slot: int) -> str:
    return body.outlet_name(body.inputs[slot])


def _slots(mapping: OutputMapping) -> Iterator[int]:
    if mapping.full is not None:
        yield mapping.full.slot
    if mapping.last is not None:
        yield mapping.last


def _slice_fact(mapping: InputMapping, fact: TypedFact, slot: int) -> TypedFact:
    if not isinstance(mapping, ScannedInput):
        return fact
    if not 0 <= mapping.axis < fact.rank or mapping.chunk == 0:
        raise FactError(f"Scan: input {slot} ({fact}) cannot be cut along axis {mapping.axis} by {mapping.chunk}")
    shape = list(fact.shape)
    shape[mapping.axis] = abs(mapping.chunk)
    return fact.with_shape(shape)


def _check_chunk(axis: int, chunk: int, fact: TypedFact, what: str) -> None:
    if not 0 <= axis < fact.rank or not may_equal(fact.shape[axis], abs(chunk)):
        raise FactError(f"Scan: {what} is {fact}, which has no axis {axis} of size {abs(chunk)} to join")


@frozen
class FrozenScan:
    """A loop between turns: iterations done, the state (``None`` where a turn brings it), and what the body keeps.

    ``position``: these iterations.
    """

    position: int
    state: tuple[Array, ...] | None
    body: Any


class ScanState:
    """What a `Scan` keeps between turns."""

    def __init__(self, op: Scan, session: Session) -> None:
        self.op = op
        self.plan = session.plan_of(op.body)
        self._start_afresh()

    def _start_afresh(self) -> None:
        self.position = 0
        self.state: list[Array] | None = None
        self.body = self.plan.spawn()

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """All iterations of one turn."""
        op = self.op
        if op.reset_every_turn:
            self._start_afresh()
        state = self._initial(inputs)
        given: list[list[Array | None]] = []
        for index in range(_iterations(op, inputs)):
            self.position += 1
            if self.position <= op.skip:
                given.append([None] * len(op.outputs))
                continue
            found = self.body.run(_body_inputs(op, inputs, state, index), symbols=session.symbols)
            state = [found[slot] for slot in op.state_outputs]
            given.append(list(found))
        # Outputs may be views of this turn's arrays, which belong to the caller.
        self.state = None if op.reset_every_turn or op.external_state else [np.array(x) for x in state]
        return self._outputs(session, inputs, state, given)

    def _initial(self, inputs: Sequence[Array]) -> list[Array]:
        start = [inputs[slot] for slot in self.op.state_inputs]
        if self.state is None:
            return start
        check_state([kept.shape for kept in self.state], [fresh.shape for fresh in start])
        return self.state

    def _outputs(
        self, session: Session, inputs: Sequence[Array], state: list[Array], given: list[list[Array | None]]
    ) -> tuple[Array, ...]:
        """The outputs by slot, from what each iteration gave; ``None`` stands for a skipped one."""
        op = self.op
        final: dict[int, Array | None] = dict(zip(op.state_outputs, state, strict=True))
        outputs: dict[int, Array] = {}
        for slot, mapping in enumerate(op.outputs):
            pieces = [found[slot] for found in given]
            fact = op.body.outlet_fact(op.body.outputs[slot])
            missing = any(piece is None for piece in pieces) or not pieces
            blank = self._blank(session, inputs, fact, pieces) if missing else None
            if mapping.full is not None:
                outputs[mapping.full.slot] = _joined(mapping.full, pieces, blank)
            if mapping.last is not None:
                last = final.get(slot, pieces[-1] if pieces else None)
                outputs[mapping.last] = _present(last, blank)
        return tuple(outputs[slot] for slot in range(len(outputs)))

    def _blank(
        self, session: Session, inputs: Sequence[Array], fact: TypedFact, pieces: Sequence[Array | None]
    ) -> Array:
        """Zeros in the shape of one iteration's output."""
        for piece in pieces:
            if piece is not None:
                return np.zeros_like(piece)
        bound = from_outside(own_symbols(self.op.body), session.symbols)
        for slot, (mapping, array) in enumerate(zip(self.op.inputs, inputs, strict=True)):
            wanted = self.op.body.outlet_fact(self.op.body.inputs[slot])
            shape = list(array.shape)
            if isinstance(mapping, ScannedInput):
                shape[mapping.axis] = abs(mapping.chunk)
            bound = bind(wanted.shape, shape, bound)
        return np.zeros([evaluate(dim, bound) for dim in fact.shape], fact.datum_type.numpy)

    def freeze(self) -> FrozenScan:
        """A snapshot of position, state, and what the body keeps."""
        state = None if self.state is None else tuple(np.array(array) for array in self.state)
        return FrozenScan(self.position, state, self.body.freeze())

    def thaw(self, frozen: FrozenScan) -> None:
        """Go back to a snapshot."""
        self.position = frozen.position
        self.state = None if frozen.state is None else list(frozen.state)
        self.body = self.plan.spawn()
        self.body.thaw(frozen.body)


def check_state(kept: Sequence[tuple[int, ...]], fresh: Sequence[tuple[int, ...]]) -> None:
    """Raises RunError where the state of the turn before has other shapes than this turn wants."""
    for before, now in zip(kept, fresh, strict=True):
        if before != now:
            raise RunError(
                f"the loop's state has shape {before} from the turn before, this turn wants {now}",
                hint="spawn a new state, or give tensors of the sizes that this one was used with",
            )


@ROWS.row(STATE, Scan)
def scan_state(op: Scan, session: Session) -> ScanState:
    """A loop that has not begun."""
    return ScanState(op, session)


def _iterations(op: Scan, inputs: Sequence[Array]) -> int:
    counts = {
        -(-array.shape[mapping.axis] // abs(mapping.chunk))
        for mapping, array in zip(op.inputs, inputs, strict=True)
        if isinstance(mapping, ScannedInput)
    }
    if len(counts) != 1:
        raise RunError(f"the scanned inputs want different numbers of iterations: {sorted(counts)}")
    return counts.pop()


def _body_inputs(op: Scan, inputs: Sequence[Array], state: Sequence[Array], index: int) -> list[Array]:
    states = iter(state)
    found: list[Array] = []
    for mapping, array in zip(op.inputs, inputs, strict=True):
        if isinstance(mapping, StateInput):
            found.append(next(states))
        elif isinstance(mapping, ScannedInput):
            found.append(_slice(array, mapping, index))
        else:
            found.append(array)
    return found


def _slice(x: Array, mapping: ScannedInput, index: int) -> Array:
    """Slice number ``index``, filled up with zeros where the axis ends (or, going backward, begins)."""
    size, chunk = x.shape[mapping.axis], abs(mapping.chunk)
    start = index * chunk if mapping.chunk > 0 else size - (index + 1) * chunk
    piece = x[(slice(None),) * mapping.axis + (slice(max(start, 0), min(start + chunk, size)),)]
    if piece.shape[mapping.axis] == chunk:
        return piece
    pads = [(0, 0)] * x.ndim
    pads[mapping.axis] = (max(-start, 0), max(start + chunk - size, 0))
    return np.pad(piece, pads)


def _joined(full: FullOutput, pieces: Sequence[Array | None], blank: Array | None) -> Array:
    present = [_present(piece, blank) for piece in pieces]
    if not present:
        empty = _present(None, blank)
        return empty[(slice(None),) * full.axis + (slice(0, 0),)]
    return np.concatenate(present[::-1] if full.chunk < 0 else present, axis=full.axis)


def _present(piece: Array | None, blank: Array | None) -> Array:
    if piece is not None:
        return piece
    assert blank is not None  # made whenever a piece is missing
    return blank


@ROWS.row(COST, Scan)
def cost(op: Scan, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """What the body costs, times the number of iterations; its parameters count once."""
    iterations = op.iterations(inputs)
    found = body_cost(op.body, op.sizes(inputs))
    return {kind: count if kind.startswith("PARAMS") else count * iterations for kind, count in found.items()}


@ROWS.row(AXES, Scan)
def axes(op: Scan, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """The axes that pass through the body, with a state one tensor before and after. Scanned axes are disconnected."""
    body = op.body
    same = [
        (body.inputs[start], body.outputs[feed]) for start, feed in zip(op.state_inputs, op.state_outputs, strict=True)
    ]
    scanned = [
        (outlet, mapping.axis)
        for outlet, mapping in zip(body.inputs, op.inputs, strict=True)
        if isinstance(mapping, ScannedInput)
    ]
    joined = [
        (outlet, mapping.full.axis)
        for outlet, mapping in zip(body.outputs, op.outputs, strict=True)
        if mapping.full is not None
    ]
    found = axes_of_model(body, same, [*scanned, *joined])
    terms = {slot: term for term, mapping in zip(found.outputs, op.outputs, strict=True) for slot in _slots(mapping)}
    result = AxesMapping(found.inputs, tuple(terms[slot] for slot in range(len(terms))))
    for mapping in op.outputs:
        if mapping.full is not None and mapping.last is not None:
            result = _cut(result, mapping.last, mapping.full.axis)
    return result


def _cut(mapping: AxesMapping, slot: int, axis: int) -> AxesMapping:
    """The last value is one slice of the joined output: its axis is another one."""
    term = mapping.outputs[slot]
    return mapping.with_output(slot, term[:axis] + mapping.free_name() + term[axis + 1 :])


def forgetful(model: TypedModel) -> TypedModel:
    """``model`` with every loop in it, at any depth, reset at every turn: what the body of a branch or a loop wants.

    The very same model when there is no such loop.
    """
    if all(_forgetful_op(node.op) is node.op for node in model.live_nodes()):
        return model
    return model.mapped(_forgetful_op, lambda fact: fact)


def _forgetful_op(op: TypedOp) -> TypedOp:
    op = map_bodies(op, forgetful)
    return replace(op, reset_every_turn=True) if isinstance(op, Scan) and not op.reset_every_turn else op
