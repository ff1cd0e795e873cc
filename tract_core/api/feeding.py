"""A signal that is pushed through a model that takes pulses, chunk by chunk; what comes out, less what is no signal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from tract_core.api.arrays import as_array
from tract_core.api.order import Given, in_order, wanted_of
from tract_core.api.streaming import StreamInput, StreamOutput, WaitingPieces, streams_of
from tract_core.api.tensor import Tensor
from tract_core.errors import InputError

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array

    Content: TypeAlias = tuple[
        Mapping[int, tuple[int, Array | None]], Mapping[int, tuple[int, int, Array | None]], list[Array] | None
    ]
    """Of each input, how much has come, and what waits; of each output, how much was seen and given, and what waits;
    an empty result, where there was no other."""


class _Frozen(Protocol):
    """What this asks of a `tract_core.FrozenState`."""

    def unfreeze(self) -> _Turns: ...


class _Turns(Protocol):
    """What this asks of a `tract_core.State`."""

    @property
    def typed(self) -> TypedModel: ...

    def input_names(self) -> list[str]: ...

    def run(self, inputs: list[Any]) -> list[Tensor]: ...

    def end_of_stream(self, total: int) -> None: ...

    def freeze(self) -> _Frozen: ...


class Feeding:
    """One signal on its way through a `State`: what `State.stream` does, for a caller who pushes chunks as they come.

    Used by one thread at a time. While it is used, the state is not run by others.
    """

    def __init__(self, state: _Turns, whole: Mapping[str, Any], content: Content | None = None) -> None:
        """For this package; users call `State.feed`. ``whole``: the inputs that do not stream, by name.

        ``content``: what `freeze` found in it, to go on from that.
        """
        model = state.typed
        self._state, self._streams = state, streams_of(model)
        ends = list(enumerate(self._streams.inputs))
        self._inputs = {slot: StreamInput.of(model, slot, end) for slot, end in ends if end is not None}
        self._wanted = [(one.name, one.fact) for one in self._inputs.values()]
        known = wanted_of(model, model.inputs)
        self._whole = {slot: _given(*known[slot], whole) for slot, end in ends if end is None}
        ends = enumerate(self._streams.outputs)
        self._outputs = {slot: StreamOutput(end, WaitingPieces(end.axis, [])) for slot, end in ends if end is not None}
        self._are_own = all(self._streams.is_own(one.end) for one in self._inputs.values())
        self._own = {slot for slot, one in self._outputs.items() if self._streams.is_own(one.end)}
        self._nothing: list[Any] | None = None  # an empty result, until there is one that is not
        self._why_not = ""
        if content is not None:
            self._thaw(content)

    def push(self, chunk: Any) -> list[Any]:
        """A chunk has come. Returns what is known of the outputs by now, and was not before.

        ``chunk``: an array of any length along the axis of the stream; where several inputs stream, one per input, in
        order or by name. The array may be used for something else once this returns. What comes back is a list of
        tensors, or of lists of them where the model has several outputs, to be laid one after the other.

        Raises InputError for a chunk that does not fit, of which nothing is taken then, and once the signal has ended,
        or a turn has failed; RunError where one fails.
        """
        return list(self._pushed(chunk))

    def finish(self) -> list[Any]:
        """The signal ends here. Returns all that is still to come, as `push` does.

        Raises InputError for a length that the model does not take, and where it has ended, or a turn has failed.
        """
        return list(self._finished())

    def freeze(self) -> FrozenFeeding:
        """A snapshot, which later chunks do not change. The feeding itself can go on."""
        self._check()
        nothing = None if self._nothing is None else [np.asarray(one) for one in self._nothing]
        waiting = {slot: (one.count, one.waiting.joined()) for slot, one in self._inputs.items()}
        seen = {slot: (one.seen, one.given, one.waiting.joined()) for slot, one in self._outputs.items()}
        names = self._state.input_names()
        whole = {names[slot]: array for slot, array in self._whole.items()}
        return FrozenFeeding(self._state.freeze(), whole, (waiting, seen, nothing))

    def stream(self, source: Iterable[Any]) -> Iterator[Any]:
        """What chunks give, one after the other, and then the end of the signal, as it is asked for."""
        for chunk in source:
            yield from self._pushed(chunk)
        yield from self._finished()

    def _pushed(self, chunk: Any) -> Iterator[Any]:
        """What `push` returns, one after the other, as it is asked for."""
        self._add(chunk)
        while self._is_full():
            yield from self._turn()
        for one in self._inputs.values():
            one.waiting.settle()

    def _finished(self) -> Iterator[Any]:
        """What `finish` returns, one after the other, as it is asked for: an empty result where there was none."""
        self._check()
        if not all(one.waiting.last is not None for one in self._inputs.values()):
            self._why_not = "the signal has ended"
            return  # no chunk came
        counts = self._counts()
        length = self._streams.symbol_for(counts)
        self._state.end_of_stream(next(count for count in counts if count is not None))
        lengths = {slot: self._streams.output_length(slot, length) for slot in self._outputs}
        while any(one.waiting.size for one in self._inputs.values()):
            yield from self._turn()
        for slot, output in self._outputs.items():
            if lengths[slot] is None:  # at most as much as has come, some of it later
                lengths[slot] = output.seen
        is_first = self._nothing is None and not any(output.seen for output in self._outputs.values())
        while is_first or any(one.lacks(lengths[slot]) for slot, one in self._outputs.items()):
            is_first = False
            yield from self._turn()
        if self._nothing is not None:
            yield self._result(self._nothing)
        self._why_not = "the signal has ended"

    def _check(self) -> None:
        if self._why_not:
            raise InputError(
                f"nothing more can be fed: {self._why_not}", hint="a state that was reset feeds another one"
            )

    def _add(self, chunk: Any) -> None:
        self._check()
        if len(self._wanted) == 1 and not isinstance(chunk, (Mapping, list, tuple)):
            values = [chunk]
        else:
            values = in_order(cast("Given", chunk), self._wanted, "input")
        pairs = list(zip(self._inputs.values(), values, strict=True))
        for one, array in [(one, one.fitting(value)) for one, value in pairs]:
            one.add(array)

    def _is_full(self) -> bool:
        """Whether there is enough for a turn."""
        return all(one.waiting.size >= one.pulse for one in self._inputs.values())

    def _turn(self) -> Iterator[Any]:
        """Run one pulse, and give on what is part of the outputs even if the signal ends here."""
        pulses = min([one.pulses for one in self._inputs.values()])
        before, self._why_not = self._why_not, "a turn has failed"
        given = [
            self._whole[slot] if slot in self._whole else self._inputs[slot].take(pulses)
            for slot in range(len(self._streams.inputs))
        ]
        pieces: list[Any] = self._state.run(given)
        self._why_not = before
        length = self._length()
        for slot, output in self._outputs.items():
            until = length if slot in self._own else self._streams.output_length(slot, length)
            pieces[slot] = output.passed(pieces[slot], until)
        if any(pieces[slot].shape[output.end.axis] for slot, output in self._outputs.items()):
            self._nothing = None
            yield self._result(pieces)
        elif not any(output.given for output in self._outputs.values()):
            self._nothing = pieces

    def _result(self, pieces: list[Any]) -> Any:
        return pieces[0] if len(pieces) == 1 else pieces

    def _counts(self) -> list[int | None]:
        slots = range(len(self._streams.inputs))
        return [self._inputs[slot].count if slot in self._inputs else None for slot in slots]

    def _length(self) -> int:
        """How long the signal is at least."""
        if self._are_own:
            return min([one.count for one in self._inputs.values()])
        return self._streams.length_within(self._counts())

    def _thaw(self, content: Content) -> None:
        waiting, seen, nothing = content
        for slot, (count, array) in waiting.items():
            self._inputs[slot].count = count
            if array is not None:
                self._inputs[slot].waiting.add(array)
        for slot, (come, given, array) in seen.items():
            self._outputs[slot].seen, self._outputs[slot].given = come, given
            if array is not None:
                self._outputs[slot].waiting.add(array)
        self._nothing = None if nothing is None else [Tensor.from_numpy(one) for one in nothing]


class FrozenFeeding:
    """A snapshot of a `Feeding`. Immutable; it can be pickled, as a `FrozenState` can."""

    __slots__ = ("_content", "_frozen", "_whole")

    def __init__(self, frozen: _Frozen, whole: Mapping[str, Array], content: Content) -> None:
        """For this package; users call `Feeding.freeze`. ``frozen``: its state; the others: as `Feeding` takes them."""
        self._frozen, self._whole, self._content = frozen, whole, content

    def unfreeze(self) -> Feeding:
        """A new feeding that goes on from the snapshot. Can be called any number of times."""
        return Feeding(self._frozen.unfreeze(), self._whole, self._content)

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenFeeding, (self._frozen, self._whole, self._content)


def _given(name: str, fact: Any, whole: Mapping[str, Any]) -> Array:
    """An input that is whole. Raises InputError where it was not given."""
    if name not in whole:
        hint = f"stream(source, {{{name!r}: ...}})"
        raise InputError(f"the input {name!r} is whole, and was not given", hint=hint)
    return as_array(whole[name], name, fact.datum_type)
