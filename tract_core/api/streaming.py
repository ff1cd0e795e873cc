"""A signal, from chunks of any length, through a model that takes pulses; what comes out, less what is no signal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from tract_core.api.arrays import as_array
from tract_core.api.order import Given, in_order, wanted_of
from tract_core.api.tensor import Tensor
from tract_core.dims import is_symbolic
from tract_core.errors import InputError
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.streams import StreamEnd, Streams, pulse_of


class _Turns(Protocol):
    """What this asks of a `tract_core.State`."""

    @property
    def typed(self) -> TypedModel: ...

    def run(self, inputs: Sequence[Any]) -> list[Tensor]: ...

    def end_of_stream(self, total: int) -> None: ...


def streams_of(model: TypedModel) -> Streams:
    """What a model says of its streams. Raises InputError for one that takes none."""
    found = Streams.of(model)
    if found is None:
        raise InputError(
            "the model takes no stream: all of its inputs are whole",
            hint="make it stream first: model.transform(tract.Pulse(8, symbol='S')), with the symbol of the axis",
        )
    return found


@dataclass(slots=True)
class _Input:
    """What has come of one input and was not yet taken. ``count``: how many positions have come in all.

    ``pulse``: how many are taken at a time; ``any_multiple``: or so many times as many.
    """

    end: StreamEnd
    pulse: int
    any_multiple: bool
    waiting: list[Array]
    count: int = 0

    @property
    def size(self) -> int:
        """How many positions are waiting."""
        return sum(piece.shape[self.end.axis] for piece in self.waiting)

    def add(self, piece: Array) -> None:
        """A chunk has come."""
        self.waiting.append(piece)
        self.count += piece.shape[self.end.axis]

    @property
    def pulses(self) -> int:
        """How many pulses a turn may take at once; one where there is less than that."""
        return max(self.size // self.pulse, 1) if self.any_multiple else 1

    def take(self, pulses: int) -> Array:
        """The next pulses; zeros where the signal has ended."""
        axis = self.end.axis
        whole = _joined(self.waiting, axis)
        size = whole.shape[axis]
        count = pulses * self.pulse
        self.waiting = [_part(whole, axis, count, size)]
        piece = _part(whole, axis, 0, min(count, size))
        if size < count:
            rest = np.zeros((*piece.shape[:axis], count - size, *piece.shape[axis + 1 :]), piece.dtype)
            piece = np.concatenate([piece, rest], axis)
        return np.ascontiguousarray(piece)


@dataclass(slots=True)
class _Output:
    """Which positions of an output have come (``seen``) and were given on (``given``), and those that wait."""

    end: StreamEnd
    waiting: list[Array]
    seen: int = 0
    given: int = 0

    def add(self, piece: Array) -> None:
        """A pulse has come."""
        axis, count = self.end.axis, piece.shape[self.end.axis]
        late = min(max(self.end.delay - self.seen, 0), count)
        self.seen += count
        self.waiting.append(_part(piece, axis, late, count))

    def take(self, until: int | None) -> Array:
        """What there is of the positions before ``until``."""
        axis = self.end.axis
        whole = _joined(self.waiting, axis)
        size = whole.shape[axis]
        count = size if until is None else min(max(until - self.given, 0), size)
        self.waiting = [_part(whole, axis, count, size)]
        self.given += count
        return _part(whole, axis, 0, count)

    def lacks(self, length: int | None) -> bool:
        """Whether some of ``length`` positions have not come yet."""
        return length is not None and self.seen < self.end.delay + length


def _joined(pieces: Sequence[Array], axis: int) -> Array:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis)


def _part(x: Array, axis: int, start: int, end: int) -> Array:
    return x[(slice(None),) * axis + (slice(start, end),)]


def stream(state: _Turns, source: Iterable[Any], whole: Mapping[str, Any]) -> Iterator[Any]:
    """`Runnable.stream`, on a state."""
    feed = _Feed(state, whole)
    for chunk in source:
        feed.add(chunk)
        while feed.is_full():
            yield from feed.turn()
    yield from feed.finish()


class _Feed:
    """One signal on its way through a state."""

    def __init__(self, state: _Turns, whole: Mapping[str, Any]) -> None:
        model = state.typed
        self.state, self.streams = state, streams_of(model)
        self.wanted = wanted_of(model, model.inputs)
        ends = list(enumerate(self.streams.inputs))
        self.inputs = {slot: _Input(end, *pulse_of(model, slot, end), []) for slot, end in ends if end is not None}
        self.whole = {slot: _given(self.wanted[slot][0], whole) for slot, end in ends if end is None}
        self.outputs = {slot: _Output(end, []) for slot, end in enumerate(self.streams.outputs) if end is not None}
        self.nothing: Any = None
        """An empty result, until there is one that is not."""

    def add(self, chunk: Any) -> None:
        """A chunk: an array where one input streams, else one per streaming input, in order or by name."""
        wanted = [self.wanted[slot] for slot in self.inputs]
        if len(wanted) == 1 and not isinstance(chunk, (Mapping, list, tuple)):
            chunk = [chunk]
        values = in_order(cast("Given", chunk), wanted, "input")
        for value, one, (name, fact) in zip(values, self.inputs.values(), wanted, strict=True):
            array, axis = as_array(value, name, fact.datum_type), one.end.axis
            if array.ndim != fact.rank or not _fits(fact, array, axis):
                shape = f"{fact}, of any size on axis {axis}"
                raise InputError(f"a chunk of {name!r} has shape {array.shape}, wanted {shape}")
            one.add(array)

    def is_full(self) -> bool:
        """Whether there is enough for a turn."""
        return all(one.size >= one.pulse for one in self.inputs.values())

    def turn(self) -> Iterator[Any]:
        """Run one pulse, and give on what is part of the outputs even if the signal ends here."""
        pulses = min(one.pulses for one in self.inputs.values())
        given = [
            self.whole[slot] if slot in self.whole else self.inputs[slot].take(pulses)
            for slot in range(len(self.wanted))
        ]
        pieces: list[Any] = list(self.state.run(given))
        length = self.streams.length_within(self._counts())
        for slot, output in self.outputs.items():
            output.add(np.asarray(pieces[slot]))
            pieces[slot] = Tensor.from_numpy(output.take(self.streams.output_length(slot, length)))
        result = pieces[0] if len(pieces) == 1 else pieces
        if any(pieces[slot].shape[output.end.axis] for slot, output in self.outputs.items()):
            self.nothing = None
            yield result
        elif not any(output.given for output in self.outputs.values()):
            self.nothing = result

    def finish(self) -> Iterator[Any]:
        """The end of the signal, and all that is still to come: an empty result where there was none at all."""
        if not all(one.waiting for one in self.inputs.values()):
            return  # no chunk came
        counts = self._counts()
        length = self.streams.symbol_for(counts)
        self.state.end_of_stream(next(count for count in counts if count is not None))
        lengths = {slot: self.streams.output_length(slot, length) for slot in self.outputs}
        while self._is_waiting():
            yield from self.turn()
        for slot, output in self.outputs.items():
            if lengths[slot] is None:  # at most as much as has come, some of it later
                lengths[slot] = output.seen
        is_first = self.nothing is None and not any(output.seen for output in self.outputs.values())
        while is_first or any(one.lacks(lengths[slot]) for slot, one in self.outputs.items()):
            is_first = False
            yield from self.turn()
        if self.nothing is not None:
            yield self.nothing

    def _counts(self) -> list[int | None]:
        return [self.inputs[slot].count if slot in self.inputs else None for slot in range(len(self.wanted))]

    def _is_waiting(self) -> bool:
        return any(one.size for one in self.inputs.values())


def _given(name: str, whole: Mapping[str, Any]) -> Any:
    if name not in whole:
        hint = f"stream(source, {{{name!r}: ...}})"
        raise InputError(f"the input {name!r} is whole, and was not given", hint=hint)
    return whole[name]


def _fits(fact: TypedFact, array: Array, stream: int) -> bool:
    sizes = zip(fact.shape, array.shape, strict=True)
    return all(axis == stream or is_symbolic(size) or size == found for axis, (size, found) in enumerate(sizes))
