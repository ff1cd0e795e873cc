"""The parts of a signal on its way: what of each input waits for a pulse, and what of each output is no signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.api.arrays import as_array
from tract_core.api.order import wanted_of
from tract_core.api.tensor import Tensor
from tract_core.errors import InputError
from tract_core.runtime.streams import StreamEnd, Streams, pulse_of

if TYPE_CHECKING:
    from tract_core.model.fact import TypedFact
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array


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
class WaitingPieces:
    """Pieces of a signal that are joined when they are taken. ``size``: how many positions they have in all.

    ``last``: no positions of a piece that came: it tells the type and the other sizes.
    """

    axis: int
    pieces: list[Array]
    size: int = 0
    last: Array | None = None

    def add(self, piece: Array) -> None:
        """A piece has come."""
        if piece.shape[self.axis]:
            self.pieces.append(piece)
        self.size += piece.shape[self.axis]
        if self.last is None:
            self.last = np.empty((*piece.shape[: self.axis], 0, *piece.shape[self.axis + 1 :]), piece.dtype)

    def settle(self) -> None:
        """What waits is ours: whoever gave the last piece may write to it, and need not keep all of it."""
        if self.size:
            self.pieces[-1] = self.pieces[-1].copy()

    def joined(self) -> Array | None:
        """All that waits; ``None`` where nothing has come."""
        if self.last is None:
            return None
        return np.concatenate([self.last, *self.pieces], self.axis)

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
class StreamInput:
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
    waiting: WaitingPieces
    count: int = 0

    @staticmethod
    def of(model: TypedModel, slot: int, end: StreamEnd) -> StreamInput:
        """The input of a model."""
        name, fact = wanted_of(model, model.inputs)[slot]
        known = [(axis, size) for axis, size in enumerate(fact.shape) if axis != end.axis and isinstance(size, int)]
        return StreamInput(end, *pulse_of(model, slot, end), name, fact, known, WaitingPieces(end.axis, []))

    def fitting(self, value: Any) -> Array:
        """A chunk, as an array. Raises InputError where it does not fit."""
        array, fact, axis = as_array(value, self.name, self.fact.datum_type), self.fact, self.end.axis
        shape, last = array.shape, self.waiting.last
        if len(shape) != fact.rank or any(shape[axis] != size for axis, size in self.sizes):
            wanted = f"{fact}, of any size on axis {axis}"
            raise InputError(f"a chunk of {self.name!r} has shape {shape}, wanted {wanted}")
        if array.dtype != fact.datum_type.numpy:
            problem = f"a chunk holds {array.dtype}, wanted {fact.datum_type.short}"
            raise InputError(problem, where=f"input {self.name!r}")
        if last is not None and (shape[:axis], shape[axis + 1 :]) != (last.shape[:axis], last.shape[axis + 1 :]):
            raise InputError(
                f"a chunk of {self.name!r} has shape {shape}, on axis {axis} alone it may differ from {last.shape}"
            )
        return array

    def add(self, chunk: Array) -> None:
        """A chunk that fits has come."""
        self.waiting.add(chunk)
        self.count += chunk.shape[self.end.axis]

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
class StreamOutput:
    """Which positions of an output have come (``seen``) and were given on (``given``), and those that wait."""

    end: StreamEnd
    waiting: WaitingPieces
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
