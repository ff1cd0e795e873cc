"""A thin scan of a model file, which finds the large payloads so that they need not be parsed.

The file is a protocol buffer. The scan goes from field to field, enters only messages that are large enough to hold a
large payload, and builds a *skeleton*: the same file with each large ``raw_data`` replaced by a short stand-in. The
``onnx`` package parses the skeleton; the payloads stay where they are, to be read in place.

A stand-in is a random prefix, made anew for every scan so that no file can contain it, and the payload's number.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from enum import Enum
from mmap import mmap
from typing import Final, NamedTuple

from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, current_watch

Buffer = mmap | bytes
"""The bytes of a model file."""

LARGE: Final = 4096
"""Bytes above which a payload is left in the file."""

MAX_NESTING: Final = 100
"""Messages inside one another; the ``onnx`` package's own parser accepts no more."""

_PREFIX_BYTES: Final = 16
_NUMBER_BYTES: Final = 8


class Region(NamedTuple):
    """A part of a file, in bytes."""

    offset: int
    length: int


class Skeleton(NamedTuple):
    """A model file without its large payloads, and where they are."""

    content: bytes
    prefix: bytes
    regions: list[Region]

    def region(self, raw: bytes) -> Region | None:
        """Where the payload is that ``raw`` stands for; ``None`` when ``raw`` is a payload itself."""
        if len(raw) != _PREFIX_BYTES + _NUMBER_BYTES or not raw.startswith(self.prefix):
            return None
        return self.regions[int.from_bytes(raw[_PREFIX_BYTES:], "little")]


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


def scan(buffer: Buffer, *, large: int = LARGE, limits: LoadLimits = DEFAULT_LIMITS) -> Skeleton:
    """The skeleton of a model.

    Raises CorruptModel, with the offset, where the encoding is broken, LimitExceeded for a file that has too much
    beside its weights, or messages too deep inside one another.
    """
    scanner = _Scanner(buffer, large, limits.max_parsed_bytes)
    content = scanner.rewrite(_Message.MODEL, 0, len(buffer), 0)
    parsed = (len(buffer) if content is None else len(content)) - scanner.plain
    if parsed > limits.max_parsed_bytes:
        raise scanner.too_much()
    return Skeleton(buffer[:] if content is None else content, scanner.prefix, scanner.regions)


class _Scanner:
    """One scan of one file."""

    def __init__(self, buffer: Buffer, large: int, max_parsed_bytes: int) -> None:
        self.buffer = buffer
        self.large = large
        self.max_parsed_bytes = max_parsed_bytes
        self.prefix = secrets.token_bytes(_PREFIX_BYTES)
        self.regions: list[Region] = []
        self.plain = 0
        """Bytes of large fields that parsing does not blow up."""
        self._fields = 0

    def rewrite(self, kind: _Message, start: int, end: int, depth: int) -> bytes | None:
        """The message between two offsets, with stand-ins; ``None`` when it holds no large payload."""
        if depth > MAX_NESTING:
            raise LimitExceeded(f"messages are nested more than {MAX_NESTING} deep", where=f"offset {start}")
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
        if (watch := current_watch()) is not None:
            watch.time()

    def _child(self, kind: _Message, start: int, size: int, depth: int) -> bytes | None:
        if kind is not _Message.PAYLOAD:
            return self.rewrite(kind, start, start + size, depth + 1)
        self.regions.append(Region(start, size))
        return self.prefix + (len(self.regions) - 1).to_bytes(_NUMBER_BYTES, "little")

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
