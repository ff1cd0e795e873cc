"""A signal, from chunks of any length, through a model that takes pulses; what comes out, less what is no signal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from tract_core.api.arrays import as_array
from tract_core.api.order import Given, in_order, wanted_of
from tract_core.api.tensor import Tensor
from tract_core.errors import InputError
from tract_core.runtime.streams import StreamEnd, Streams, pulse_of

if TYPE_CHECKING:
    from tract_core.model.fact import TypedFact
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array


class _Turns(Protocol):
    """What this asks of a `tract_core.State`."""

    @property
    def typed(self) -> TypedModel: ...

    def run(self, inputs: list[Any]) -> list[Tensor]: ...

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
class _Waiting:
    """Pieces of a signal that are joined when they are taken. ``size``: how many positions they have in all.

    ``last``: a piece that came, whatever became of it; it tells the type and the other sizes.
    """

    axis: int
    pieces: list[Array]
    size: int = 0
    last: Array | None = None

    def add(self, piece: Array) -> None:
        """A piece has come."""
        self.pieces.append(piece)
        self.size += piece.shape[self.axis]
        self.last = piece

    def take(self, count: int) -> Array:
        """The first positions, as many as there are."""
        pieces, axis, count = self.pieces, self.axis, min(count, self.size)
        if len(pieces) == 1 and count == self.size:
            self.size = 0
            return pieces.pop()
        assert self.last is not None  # something has come
        whole = np.concatenate(pieces, axis) if len(pieces) > 1 else pieces[0] if pieces else self.last
        self.size -= count
        self.pieces = [_part(whole, axis, count, count + self.size)] if self.size else []
        return _part(whole, axis, 0, count)


@dataclass(slots=True)
class _Input:
    """What has come of one input and was not yet taken. ``count``: how many positions have come in all.

    ``pulse``: how many are taken at a time; ``any_multiple``: or so many times as many. ``sizes``: of the other axes,
    as far as they are known.
    """

    end: StreamEnd
    pulse: int
    any_multiple: bool
    name: str
    fact: TypedFact
    sizes: list[tuple[int, int]]
    waiting: _Waiting
    count: int = 0

    @staticmethod
    def of(model: TypedModel, slot: int, end: StreamEnd) -> _Input:
        """The input of a model."""
        name, fact = wanted_of(model, model.inputs)[slot]
        known = [(axis, size) for axis, size in enumerate(fact.shape) if axis != end.axis and isinstance(size, int)]
        return _Input(end, *pulse_of(model, slot, end), name, fact, known, _Waiting(end.axis, []))

    def add(self, value: Any) -> None:
        """A chunk has come. Raises InputError where it does not fit."""
        array, fact, axis = as_array(value, self.name, self.fact.datum_type), self.fact, self.end.axis
        shape = array.shape
        if len(shape) != fact.rank or any(shape[axis] != size for axis, size in self.sizes):
            wanted = f"{fact}, of any size on axis {axis}"
            raise InputError(f"a chunk of {self.name!r} has shape {shape}, wanted {wanted}")
        self.waiting.add(array)
        self.count += shape[axis]

    @property
    def pulses(self) -> int:
        """How many pulses a turn may take at once; one where there is less than that."""
        return max(self.waiting.size // self.pulse, 1) if self.any_multiple else 1

    def take(self, pulses: int) -> Array:
        """The next pulses; zeros where the signal has ended."""
        axis, count = self.end.axis, pulses * self.pulse
        piece = self.waiting.take(count)
        size = piece.shape[axis]
        if size < count:
            rest = np.zeros((*piece.shape[:axis], count - size, *piece.shape[axis + 1 :]), piece.dtype)
            piece = np.concatenate([piece, rest], axis)
        return np.ascontiguousarray(piece)


@dataclass(slots=True)
class _Output:
    """Which positions of an output have come (``seen``) and were given on (``given``), and those that wait."""

    end: StreamEnd
    waiting: _Waiting
    seen: int = 0
    given: int = 0

    def passed(self, piece: Tensor, until: int | None) -> Tensor:
        """A pulse has come: what there is now of the positions before ``until``."""
        axis, delay, waiting = self.end.axis, self.end.delay, self.waiting
        count = piece.shape[axis]
        if self.seen >= delay and not waiting.size and (until is None or self.given + count <= until):
            self.seen += count
            self.given += count
            return piece
        array = np.asarray(piece)
        late = min(max(delay - self.seen, 0), count)
        self.seen += count
        waiting.add(_part(array, axis, late, count))
        found = waiting.take(waiting.size if until is None else max(until - self.given, 0))
        self.given += found.shape[axis]
        return Tensor.from_numpy(found)

    def lacks(self, length: int | None) -> bool:
        """Whether some of ``length`` positions have not come yet."""
        return length is not None and self.seen < self.end.delay + length


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
        ends = list(enumerate(self.streams.inputs))
        self.inputs = {slot: _Input.of(model, slot, end) for slot, end in ends if end is not None}
        self.wanted = [(one.name, one.fact) for one in self.inputs.values()]
        names = [name for name, _ in wanted_of(model, model.inputs)]
        self.whole = {slot: _given(names[slot], whole) for slot, end in ends if end is None}
        ends = enumerate(self.streams.outputs)
        self.outputs = {slot: _Output(end, _Waiting(end.axis, [])) for slot, end in ends if end is not None}
        self._are_own = all(self.streams.is_own(one.end) for one in self.inputs.values())
        self._own = {slot for slot, one in self.outputs.items() if self.streams.is_own(one.end)}
        self.nothing: Any = None
        """An empty result, until there is one that is not."""

    def add(self, chunk: Any) -> None:
        """A chunk: an array where one input streams, else one per streaming input, in order or by name."""
        if len(self.wanted) == 1 and not isinstance(chunk, (Mapping, list, tuple)):
            next(iter(self.inputs.values())).add(chunk)
            return
        values = in_order(cast("Given", chunk), self.wanted, "input")
        for value, one in zip(values, self.inputs.values(), strict=True):
            one.add(value)

    def is_full(self) -> bool:
        """Whether there is enough for a turn."""
        return all(one.waiting.size >= one.pulse for one in self.inputs.values())

    def turn(self) -> Iterator[Any]:
        """Run one pulse, and give on what is part of the outputs even if the signal ends here."""
        pulses = min([one.pulses for one in self.inputs.values()])
        given = [
            self.whole[slot] if slot in self.whole else self.inputs[slot].take(pulses)
            for slot in range(len(self.streams.inputs))
        ]
        pieces: list[Any] = self.state.run(given)
        length = self._length()
        for slot, output in self.outputs.items():
            until = length if slot in self._own else self.streams.output_length(slot, length)
            pieces[slot] = output.passed(pieces[slot], until)
        result = pieces[0] if len(pieces) == 1 else pieces
        if any(pieces[slot].shape[output.end.axis] for slot, output in self.outputs.items()):
            self.nothing = None
            yield result
        elif not any(output.given for output in self.outputs.values()):
            self.nothing = result

    def finish(self) -> Iterator[Any]:
        """The end of the signal, and all that is still to come: an empty result where there was none at all."""
        if not all(one.waiting.last is not None for one in self.inputs.values()):
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
        return [self.inputs[slot].count if slot in self.inputs else None for slot in range(len(self.streams.inputs))]

    def _length(self) -> int:
        """How long the signal is at least."""
        if self._are_own:
            return min([one.count for one in self.inputs.values()])
        return self.streams.length_within(self._counts())

    def _is_waiting(self) -> bool:
        return any(one.waiting.size for one in self.inputs.values())


def _given(name: str, whole: Mapping[str, Any]) -> Any:
    if name not in whole:
        hint = f"stream(source, {{{name!r}: ...}})"
        raise InputError(f"the input {name!r} is whole, and was not given", hint=hint)
    return whole[name]
