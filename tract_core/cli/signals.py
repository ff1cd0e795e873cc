"""Whole signals through models that take them in pulses: what is fed, turn by turn, and what comes out in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tract_core.api.calls import Calls
from tract_core.api.feeding import Feeding
from tract_core.api.state import FrozenState, State
from tract_core.cli.readings import Bindings
from tract_core.dims import evaluate, symbols_of
from tract_core.errors import InputError
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.runtime.protocol import ObservablePlan, Observer, PlanState
from tract_core.runtime.streams import StreamEnd, Streams, pulse_of

if TYPE_CHECKING:
    from tract_core.api.tensor import Tensor
    from tract_core.cli.request import Request

Array = np.ndarray[Any, Any]

PULSES: Final = Fraction(7, 2)
"""How many pulses a random signal has, beside those that the delay takes: the last one is half a pulse."""


def whole_facts(model: TypedModel, streams: Streams) -> list[TypedFact]:
    """The facts of the inputs over the whole signal."""
    facts: list[TypedFact] = []
    for outlet, end in zip(model.inputs, streams.inputs, strict=True):
        fact = model.outlet_fact(outlet)
        if end is not None and end.length is not None:
            fact = fact.with_shape([*fact.shape[: end.axis], end.length, *fact.shape[end.axis + 1 :]])
        facts.append(fact)
    return facts


def with_length(model: TypedModel, streams: Streams, given: Bindings, turns: Fraction) -> Bindings:
    """The values of symbols, with a length of the signal of so many pulses where the user gave none."""
    if streams.symbol in given.values:
        return given
    needed = frozenset[str]().union(
        *(symbols_of(one.length) for one in streams.inputs if one and one.length is not None)
    )
    if streams.symbol not in needed:
        return given
    return given._replace(values={**given.values, streams.symbol: ceil(turns * pulse_length(model, streams))})


def pulse_length(model: TypedModel, streams: Streams) -> int:
    """By how much one pulse makes the signal longer."""
    counts = [end and pulse_of(model, slot, end)[0] for slot, end in enumerate(streams.inputs)]
    return max(streams.length_within(counts), 1)


def turns_late(model: TypedModel, streams: Streams) -> Fraction:
    """How many pulses go by before the latest output begins."""
    ends = zip(model.outputs, streams.outputs, strict=True)
    return max(
        (lateness(model.outlet_fact(outlet), end) for outlet, end in ends if end is not None), default=Fraction(0)
    )


def lateness(pulse: TypedFact, end: StreamEnd) -> Fraction:
    """How many pulses go by before a stream begins. ``pulse``: the fact of one."""
    return Fraction(end.delay, max(size_of(pulse, end), 1))


def size_of(pulse: TypedFact, end: StreamEnd) -> int:
    """How many positions of a stream are in one pulse, in the smallest one where it may have many sizes."""
    size = pulse.shape[end.axis]
    return evaluate(size, dict.fromkeys(symbols_of(size), 1))


def without_rest(model: TypedModel, streams: Streams, arrays: Sequence[Array]) -> list[Array]:
    """The inputs, less what does not fill a pulse at the end."""
    found = list(arrays)
    for slot, end in enumerate(streams.inputs):
        if end is not None:
            pulse, _ = pulse_of(model, slot, end)
            found[slot] = part(arrays[slot], end.axis, 0, arrays[slot].shape[end.axis] // pulse * pulse)
    return found


def first_turn(model: TypedModel, arrays: Sequence[Array]) -> list[Array]:
    """The first pulse of each input that streams; the inputs themselves where none does."""
    return next(pulses(model, arrays, _zeros))[0] if Streams.of(model) is not None else list(arrays)


def pulses(
    model: TypedModel, arrays: Sequence[Array], behind: Callable[[Array, Sequence[int]], Array]
) -> Iterator[tuple[list[Array], bool]]:
    """The inputs of each turn, without end, and whether the signal ends in that turn or has ended before.

    ``behind``: makes of a whole input what comes when it has ended, in a shape.
    """
    streams = Streams.of(model)
    assert streams is not None
    sizes = [end and pulse_of(model, slot, end)[0] for slot, end in enumerate(streams.inputs)]
    turn = 0
    while True:
        given, ended = list(arrays), False
        for slot, (end, size) in enumerate(zip(streams.inputs, sizes, strict=True)):
            if end is None or size is None:
                continue
            piece = part(arrays[slot], end.axis, turn * size, (turn + 1) * size)
            missing = size - piece.shape[end.axis]
            if missing:
                ended = True
                rest = behind(arrays[slot], (*piece.shape[: end.axis], missing, *piece.shape[end.axis + 1 :]))
                piece = np.concatenate([piece, rest], end.axis)
            given[slot] = np.ascontiguousarray(piece)
        yield given, ended
        turn += 1


def part(x: Array, axis: int, start: int, end: int) -> Array:
    """The positions from ``start`` up to and without ``end`` of an axis, as far as there are any."""
    return x[(slice(None),) * axis + (slice(start, end),)]


def _zeros(whole: Array, shape: Sequence[int]) -> Array:
    return np.zeros(shape, whole.dtype)


def outputs_for(
    request: Request,
    model: TypedModel,
    arrays: Sequence[Array],
    observe: Observer | None = None,
    begin: Callable[[int], None] | None = None,
) -> list[Array]:
    """The outputs on the runtime of ``-r``; of a model that takes its signal in pulses, those of the whole signal.

    ``arrays``: its whole inputs. ``observe`` sees what every node computes. ``begin`` is told of each pulse, by its
    number. Raises InputError where the runtime shows no nodes.
    """
    streams, plan = Streams.of(model), request.prepare(model)
    if observe is None:
        state = plan.spawn()
    elif isinstance(plan, ObservablePlan):
        state = plan.spawn_observed(observe)
    else:
        raise InputError(f"runtime {plan.explain().runtime!r} does not show single nodes", hint="use -r reference")
    if streams is None:
        return state.run(arrays)
    return streamed_outputs(model, streams, Turns(held(request, model, state), begin), arrays)


def held(request: Request, model: TypedModel, state: PlanState) -> State:
    """A state of a plan, as users of the library hold it."""
    runnable = request.runnable(model)
    return State(runnable, Calls(model, runnable.plan, runnable.runtime), state)


class Turns:
    """A state that says when a turn begins."""

    def __init__(self, state: State, begin: Callable[[int], None] | None) -> None:
        self._state, self._begin = state, begin
        self._turn = 0

    @property
    def typed(self) -> TypedModel:
        """The model."""
        return self._state.typed

    def run(self, inputs: Sequence[Any]) -> list[Tensor]:
        """The next turn."""
        if self._begin is not None:
            self._begin(self._turn)
        self._turn += 1
        return self._state.run(inputs)

    def input_names(self) -> list[str]:
        """As `State.input_names`."""
        return self._state.input_names()

    def freeze(self) -> FrozenState:
        """As `State.freeze`."""
        return self._state.freeze()

    def end_of_stream(self, total: int) -> None:
        """As `State.end_of_stream`."""
        self._state.end_of_stream(total)


def streamed_outputs(model: TypedModel, streams: Streams, turns: Turns, arrays: Sequence[Array]) -> list[Array]:
    """What a model makes of whole signals, pulse by pulse, up to their end: outputs as long as those of the batch."""
    chunk = [array for array, end in zip(arrays, streams.inputs, strict=True) if end is not None]
    whole = {
        model.outlet_name(outlet): array
        for outlet, array, end in zip(model.inputs, arrays, streams.inputs, strict=True)
        if end is None
    }
    results = [cast("Any", one if isinstance(one, list) else [one]) for one in Feeding(turns, whole).stream([chunk])]
    outputs: list[Array] = []
    for slot, end in enumerate(streams.outputs):
        pieces = [np.asarray(result[slot]) for result in results]
        outputs.append(pieces[-1] if end is None else np.concatenate(pieces, end.axis))
    return outputs
