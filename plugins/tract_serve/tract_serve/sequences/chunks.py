"""Chunks of a signal, of any length, for a model that takes pulses; and what comes of one chunk as one output."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Several
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.data import DatumType
from tract_core.runtime.streams import StreamEnd, Streams
from tract_serve.errors import BadRequest
from tract_serve.tensors.ports import Port, Signature

if TYPE_CHECKING:
    from tract_core import Feeding

Array = np.ndarray[Any, Any]


class Chunks:
    """How the inputs and outputs of one model stream."""

    def __init__(self, signature: Signature, streams: Streams) -> None:
        self.streams = streams
        self.signature = Signature(_free(signature.inputs, streams.inputs), _free(signature.outputs, streams.outputs))

    @property
    def first(self) -> int:
        """The first input that streams."""
        return next(slot for slot, end in enumerate(self.streams.inputs) if end is not None)

    def in_order(self, given: Mapping[str, tuple[DatumType, Array]]) -> list[Array]:
        """Arrays by name, of any length along the axis of their streams, in order. Raises BadRequest."""
        return self.signature.in_order(given)

    def positions(self, inputs: Several[Array]) -> int:
        """How many positions of the signal come with a turn."""
        end = self.streams.inputs[self.first]
        assert end is not None  # that is the first one
        return inputs[self.first].shape[end.axis]

    def whole(self, inputs: Several[Array]) -> dict[str, Array]:
        """The inputs that do not stream, by name: copies, which last longer than a request."""
        return {
            port.name: array.copy()
            for port, end, array in zip(self.signature.inputs, self.streams.inputs, inputs, strict=True)
            if end is None
        }

    def fed(self, feeding: Feeding, whole: Mapping[str, Array], inputs: Several[Array], *, ends: bool) -> list[Array]:
        """What a chunk gives, each output laid in one piece, without positions where there is nothing yet.

        ``whole``: the inputs that do not stream, as they were at first. Raises BadRequest where they have changed.
        ``inputs``: none where nothing comes but the end.
        """
        if not inputs:
            return self._laid(feeding.finish(), inputs)
        chunk: list[Array] = []
        for port, end, array in zip(self.signature.inputs, self.streams.inputs, inputs, strict=True):
            if end is not None:
                chunk.append(array)
            elif not _are_same(whole[port.name], array):
                raise BadRequest("it does not stream, and is another one than before", where=f"input {port.name!r}")
        return self._laid(feeding.push(chunk) + (feeding.finish() if ends else []), inputs)

    def _laid(self, pieces: list[Any], inputs: Several[Array]) -> list[Array]:
        several = [[one] for one in pieces] if len(self.streams.outputs) == 1 else pieces
        sizes = {
            name: size
            for port, array in zip(self.signature.inputs, inputs, strict=False)
            for name, size in zip(port.symbols, array.shape, strict=True)
            if name is not None
        }
        return [
            _laid([np.asarray(one[slot]) for one in several], port, end, sizes)
            for slot, (port, end) in enumerate(zip(self.signature.outputs, self.streams.outputs, strict=True))
        ]


def _free(ports: Several[Port], ends: Several[StreamEnd | None]) -> tuple[Port, ...]:
    """Ports whose sizes may be any along the axes of their streams."""
    found: list[Port] = []
    for port, end in zip(ports, ends, strict=True):
        sizes, symbols = list(port.sizes), list(port.symbols)
        if end is not None:
            sizes[end.axis] = symbols[end.axis] = None
        found.append(Port(port.name, port.kind, port.datatype, tuple(sizes), tuple(symbols), port.fact))
    return tuple(found)


def _laid(pieces: list[Array], port: Port, end: StreamEnd | None, sizes: Mapping[str, int]) -> Array:
    """Pieces of an output one behind the other; the last one of an output that is whole in each."""
    if not pieces:
        known = [size if name is None else sizes.get(name) for size, name in zip(port.sizes, port.symbols, strict=True)]
        if end is not None:
            known[end.axis] = 0
        return np.zeros([size or 0 for size in known], port.kind.numpy)
    if end is None or len(pieces) == 1:
        return pieces[-1]
    return np.concatenate(pieces, end.axis)


def _are_same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()
