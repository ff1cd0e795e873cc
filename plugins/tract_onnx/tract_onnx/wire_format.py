"""A thin scan of a model file, which finds the large payloads so that they need not be parsed.

The file is a protocol buffer. The scan goes from field to field, enters only messages that are large enough to hold a
large payload, and builds a *skeleton*: the same file with each large ``raw_data`` replaced by a short stand-in. The
``onnx`` package parses the skeleton; the payloads stay where they are, to be read in place. So do the long lists of
attributes, whose stand-in is the attribute's text.

A stand-in is a random prefix, made anew for every scan so that no file can contain it, and the payload's number.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, current_budget
from tract_onnx.long_lists import Buffer, ListKind, Run, find_run, forget, packed_run

LARGE: Final = 4096
"""Bytes above which a payload is left in the file."""

LONG: Final = 1 << 16
"""Bytes above which a list is left in the file."""

MAX_NESTING: Final = 100
"""Messages inside one another; the ``onnx`` package's own parser accepts no more."""

_PREFIX_BYTES: Final = 16
_NUMBER_BYTES: Final = 8


class Region(NamedTuple):
    """A part of a file, in bytes."""

    offset: int
    length: int


class Skeleton(NamedTuple):
    """A model file without its large payloads and long lists, and where they are."""

    content: bytes
    prefix: bytes
    regions: list[Region]
    lists: Sequence[Run] = ()

    def region(self, raw: bytes) -> Region | None:
        """Where the payload is that ``raw`` stands for; ``None`` when ``raw`` is a payload itself."""
        number = self._number(raw)
        return None if number is None else self.regions[number]

    def run(self, text: bytes) -> Run | None:
        """Where the list is that an attribute's text stands for; ``None`` when it is a text."""
        number = self._number(text)
        return None if number is None else self.lists[number]

    def _number(self, found: bytes) -> int | None:
        if len(found) != _PREFIX_BYTES + _NUMBER_BYTES or not found.startswith(self.prefix):
            return None
        return int.from_bytes(found[_PREFIX_BYTES:], "little")


class _Message(Enum):
    """The kinds of message on the way from a model to a payload, and the payload itself."""

    MODEL = 0
    GRAPH = 1
    NODE = 2
    ATTRIBUTE = 3
    TENSOR = 4
    SPARSE = 5
    FUNCTION = 6
    PAYLOAD = 7


_FIELDS: Final[Mapping[_Message, Mapping[int, _Message]]] = {
    _Message.MODEL: {7: _Message.GRAPH, 25: _Message.FUNCTION},
    _Message.GRAPH: {1: _Message.NODE, 5: _Message.TENSOR, 15: _Message.SPARSE},
    _Message.FUNCTION: {7: _Message.NODE},
    _Message.NODE: {5: _Message.ATTRIBUTE},
    _Message.ATTRIBUTE: {
        5: _Message.TENSOR,
        6: _Message.GRAPH,
        10: _Message.TENSOR,
        11: _Message.GRAPH,
        22: _Message.SPARSE,
        23: _Message.SPARSE,
    },
    _Message.SPARSE: {1: _Message.TENSOR, 2: _Message.TENSOR},
    _Message.TENSOR: {9: _Message.PAYLOAD},
}
"""Which field of which message leads to a payload, by its number in ``onnx.proto``."""


def scan(buffer: Buffer, *, large: int = LARGE, long: int = LONG, limits: LoadLimits = DEFAULT_LIMITS) -> Skeleton:
    """The skeleton of a model, without payloads of more than ``large`` bytes and lists of more than ``long``.

    Raises CorruptModel, with the offset, where the encoding is broken, LimitExceeded for a file that has too much
    beside its weights, or messages too deep inside one another.
    """
    scanner = _Scanner(buffer, large, long, limits.max_parsed_bytes)
    content = scanner.rewrite(_Message.MODEL, 0, len(buffer), 0)
    parsed = (len(buffer) if content is None else len(content)) - scanner.plain
    if parsed > limits.max_parsed_bytes:
        raise scanner.too_much()
    return Skeleton(buffer[:] if content is None else content, scanner.prefix, scanner.regions, scanner.lists)


class _Scanner:
    """One scan of one file."""

    def __init__(self, buffer: Buffer, large: int, long: int, max_parsed_bytes: int) -> None:
        self.buffer = buffer
        self.large = large
        self.long = long
        self.max_parsed_bytes = max_parsed_bytes
        self.prefix = os.urandom(_PREFIX_BYTES)
        self.regions: list[Region] = []
        self.lists: list[Run] = []
        self.plain = 0
        """Bytes of large fields that parsing does not blow up."""
        self._fields = 0

    def rewrite(self, kind: _Message, start: int, end: int, depth: int) -> bytes | None:
        """The message between two offsets, with stand-ins; ``None`` when it holds no large payload."""
        if depth > MAX_NESTING:
            raise LimitExceeded(f"messages are nested more than {MAX_NESTING} deep", where=f"offset {start}")
        if kind is _Message.ATTRIBUTE and end - start > self.long:
            without_list = self._without_list(start, end)
            if without_list is not None:
                return without_list
        children = _FIELDS[kind]
        pieces: list[bytes] = []
        copied = position = start
        fields = 0
        while position < end:
            field = position
            fields += 1
            if not fields & 0xFFFF:
                self._count_fields(0x10000)
            tag, position = self._varint(position, end)
            if tag & 7 != 2:
                position = self._skip(tag, field, position, end)
                continue
            size, position = self._varint(position, end)
            if size > end - position:
                raise _truncated(field, f"a field of {size} bytes where {end - position} are left")
            child = children.get(tag >> 3) if size > self.large else None
            if size > self.large and kind is _Message.TENSOR and tag >> 3 in _PLAIN:
                self.plain += size
            changed = None if child is None else self._child(child, position, size, depth)
            if changed is not None:
                pieces += (self.buffer[copied:field], _encode(tag), _encode(len(changed)), changed)
                copied = position + size
            position += size
        if not pieces:
            return None
        pieces.append(self.buffer[copied:end])
        return b"".join(pieces)

    def _without_list(self, start: int, end: int) -> bytes | None:
        """An attribute with a stand-in for its list; ``None`` unless it has one long list, all in one place."""
        found: Run | None = None
        first = position = start
        fields = 0
        while position < end:
            field = position
            fields += 1
            if not fields & 0xFFFF:
                self._count_fields(0x10000)
            run, position = self._run(field, end)
            if run is not None:
                if found is not None or run.length <= self.long:
                    return None
                found, first = run, field
        if found is None:
            return None
        forget(self.buffer, found)
        self.lists.append(found)
        stand_in = self._stand_in(len(self.lists) - 1)
        text = _encode(_TEXT << 3 | 2) + _encode(len(stand_in)) + stand_in
        return self.buffer[start:first] + text + self.buffer[found.offset + found.length : end]

    def _run(self, field: int, end: int) -> tuple[Run | None, int]:
        """The list that begins with a field of an attribute, and the offset after it; ``None`` for another field.

        A list that cannot be read here has no elements.
        """
        tag, position = self._varint(field, end)
        number, wire_type = tag >> 3, tag & 7
        if (number, wire_type) in _UNPACKED:
            run = find_run(self.buffer, ListKind(number), field, end)
            return run, run.offset + run.length
        if wire_type != 2:
            return None, self._skip(tag, field, position, end)
        size, position = self._varint(position, end)
        if size > end - position:
            raise _truncated(field, f"a field of {size} bytes where {end - position} are left")
        end = position + size
        return packed_run(self.buffer, ListKind(number), position, end) if number in _PACKED else None, end

    def _stand_in(self, number: int) -> bytes:
        return self.prefix + number.to_bytes(_NUMBER_BYTES, "little")

    def too_much(self) -> LimitExceeded:
        """What to say of a file that has too much beside its weights."""
        return LimitExceeded(
            f"the file has more than {self.max_parsed_bytes} bytes beside its weights",
            where="the whole file",
            hint="a file that needs so many can be loaded with LoadLimits(max_parsed_bytes=...)",
        )

    def _count_fields(self, count: int) -> None:
        """Raises LimitExceeded when there are too many, of two bytes at least, or when time is up."""
        self._fields += count
        if 2 * self._fields > self.max_parsed_bytes:
            raise self.too_much()
        if (budget := current_budget()) is not None:
            budget.time()

    def _child(self, kind: _Message, start: int, size: int, depth: int) -> bytes | None:
        if kind is not _Message.PAYLOAD:
            return self.rewrite(kind, start, start + size, depth + 1)
        self.regions.append(Region(start, size))
        return self._stand_in(len(self.regions) - 1)

    def _varint(self, position: int, end: int) -> tuple[int, int]:
        """The number that begins at an offset, and the offset after it."""
        if position < end and (byte := self.buffer[position]) < 0x80:
            return byte, position + 1
        value = shift = 0
        for offset in range(position, min(position + 10, end)):
            byte = self.buffer[offset]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, offset + 1
            shift += 7
        raise _truncated(position, "a number that does not end")

    def _skip(self, tag: int, field: int, position: int, end: int) -> int:
        """The offset after a field that is a plain number."""
        if tag & 7 == 0:
            return self._varint(position, end)[1]
        size = _FIXED.get(tag & 7)
        if size is None:
            raise CorruptModel(
                f"found a field of wire type {tag & 7}: the file is damaged, or is no ONNX model",
                where=f"offset {field}",
                hint="download or export the model again",
            )
        if size > end - position:
            raise _truncated(field, f"a field of {size} bytes where {end - position} are left")
        return position + size


_TEXT: Final = 4
"""The field of an attribute that holds a text."""

_UNPACKED: Final = frozenset({(ListKind.FLOATS, 5), (ListKind.INTS, 0), (ListKind.STRINGS, 2)})
"""The fields of an attribute that hold one element of a list each, and how they are encoded."""

_PACKED: Final = frozenset({ListKind.FLOATS, ListKind.INTS})
"""The fields that may hold all elements of a list."""

_PLAIN: Final = frozenset({4, 10})
"""Fields of a tensor that hold single and double precision numbers, as many bytes in memory as in the file."""

_FIXED: Final = {1: 8, 5: 4}
"""Bytes of the wire types of fixed size."""


def _truncated(offset: int, found: str) -> CorruptModel:
    return CorruptModel(
        f"found {found}: the file is truncated, or is no ONNX model",
        where=f"offset {offset}",
        hint="download or export the model again",
    )


def _encode(number: int) -> bytes:
    """A number as a varint."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
