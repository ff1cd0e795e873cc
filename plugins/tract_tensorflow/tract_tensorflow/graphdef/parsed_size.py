"""How much of a file is parsed, beside the elements of its tensors, which parsing does not blow up.

Parsed, a message takes up to a hundred times as much as in the file. Protocol buffers are followed to the elements in
raw bytes, as far as parts of a file are large: https://protobuf.dev/programming-guides/encoding says how they are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from mmap import mmap
from typing import Final

from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.limits import LoadLimits, check_time

Buffer = bytes | mmap

_LARGE: Final = 1 << 10
"""Bytes of a part that may hold elements; smaller ones count as they are."""

_OFTEN: Final = 1 << 14
"""Fields after which the time is looked at."""

_ELEMENTS: Final = "elements"

_INSIDE: Final[Mapping[str, Mapping[int, str]]] = {
    "SavedModel": {2: "MetaGraphDef"},
    "MetaGraphDef": {2: "GraphDef"},
    "GraphDef": {1: "NodeDef", 2: "FunctionDefLibrary"},
    "FunctionDefLibrary": {1: "FunctionDef"},
    "FunctionDef": {3: "NodeDef"},
    "NodeDef": {5: "AttrEntry"},
    "AttrEntry": {2: "AttrValue"},
    "AttrValue": {8: "TensorProto"},
    "TensorProto": {4: _ELEMENTS},
}
"""Which field of which message leads to elements, by its number."""

_FIXED: Final = {1: 8, 5: 4}
"""Bytes of a field of a fixed size, by how it is encoded."""


def check_parsed(content: Buffer, kind: str, limits: LoadLimits) -> None:
    """Raises LimitExceeded for a file that has too much beside its weights, CorruptModel for what is no message.

    ``kind``: the message that the file is. No more is looked at than is allowed, beside the weights.
    """
    if len(content) > limits.max_parsed_bytes:
        _Walk(content, limits.max_parsed_bytes).message(kind, 0, len(content))


class _Walk:
    """One way through a file. ``room``: bytes that are allowed, and not seen yet."""

    def __init__(self, content: Buffer, room: int) -> None:
        self._content = content
        self._allowed = self._room = room
        self._fields = 0

    def message(self, kind: str, start: int, end: int) -> None:
        inside, at = _INSIDE[kind], start
        while at < end:
            begin = at
            tag, at = self._number(at, end)
            number, wire = tag >> 3, tag & 7
            if wire != 2:
                at = self._number(at, end)[1] if wire == 0 else at + self._fixed(wire, begin)
                self._take(at - begin)
                continue
            length, at = self._number(at, end)
            if at + length > end:
                raise CorruptModel("it ends inside of a field", where=f"offset {begin}")
            part = inside.get(number) if length >= _LARGE else None
            self._take(at - begin + (length if part is None else 0))
            if part is not None and part != _ELEMENTS:
                self.message(part, at, at + length)
            at += length

    def _fixed(self, wire: int, at: int) -> int:
        if wire not in _FIXED:
            raise CorruptModel(f"a field is encoded in the way {wire}", where=f"offset {at}")
        return _FIXED[wire]

    def _take(self, count: int) -> None:
        self._fields += 1
        if not self._fields % _OFTEN:
            check_time()
        self._room -= count
        if self._room < 0:
            raise LimitExceeded(
                f"beside its weights it has more than {self._allowed} bytes, which are allowed",
                hint="a file that says so much can be loaded with LoadLimits(max_parsed_bytes=...)",
            )

    def _number(self, at: int, end: int) -> tuple[int, int]:
        """A whole number in groups of 7 bits, and the offset behind it."""
        value = shift = 0
        while at < end and shift < 70:
            byte = self._content[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at
        raise CorruptModel("a number has no end", where=f"offset {at}")
