"""What custom operators say: maps of FlexBuffers, read with every place looked at before it is read.

A value is written with a width of 1, 2, 4 or 8 bytes, and what is larger lies some distance in front of it; the last
three bytes of the whole are the value of the root, its type and its width. Source: the description of FlexBuffers'
binary format. Blocks of memory and lists with their types apart are read where files of TFLite have them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.plugins.keys import Array

Value = Any
"""A number, a truth value, a text, bytes, a list or a map of these; ``None`` for nothing."""

_MAX_DEPTH: Final = 16
_MAX_VALUES: Final = 1 << 16

_INT, _UINT, _FLOAT, _KEY, _STRING = 1, 2, 3, 4, 5
_INDIRECT: Final = {6: _INT, 7: _UINT, 8: _FLOAT}
_MAP, _VECTOR, _BLOB, _BOOL = 9, 10, 25, 26
_TYPED: Final = {11: _INT, 12: _UINT, 13: _FLOAT, 14: _KEY, 15: _STRING, 36: _BOOL}
_FIXED: Final = {16 + 3 * (count - 2) + kind - 1: (kind, count) for count in (2, 3, 4) for kind in (1, 2, 3)}
_CODES: Final = {
    _INT: {1: "<b", 2: "<h", 4: "<i", 8: "<q"},
    _UINT: {1: "<B", 2: "<H", 4: "<I", 8: "<Q"},
    _FLOAT: {2: "<e", 4: "<f", 8: "<d"},
    _BOOL: {1: "<B", 2: "<H", 4: "<I", 8: "<Q"},
}


def read_map(content: Array) -> Mapping[str, Value]:
    """The map that some bytes are; an empty one for no bytes. Raises ModelError."""
    if not content.size:
        return {}
    found = _root(content.tobytes())
    if not isinstance(found, dict):
        raise CorruptModel(f"the options of a custom operator are {type(found).__name__}, wanted a map")
    return found  # pyright: ignore[reportUnknownVariableType]: `_Reader` makes maps with texts as keys


def read_texts(content: Array) -> list[bytes]:
    """The list of texts that some bytes are, each as its bytes. Raises ModelError."""
    found = _root(content.tobytes(), as_bytes=True)
    if not isinstance(found, list) or not all(isinstance(one, bytes) for one in cast("list[object]", found)):
        raise CorruptModel("the options of a custom operator are no list of texts")
    return cast("list[bytes]", found)


def _root(raw: bytes, *, as_bytes: bool = False) -> Value:
    if len(raw) < 3:
        raise CorruptModel(f"the options of a custom operator have {len(raw)} bytes, at least 3 are wanted")
    return _Reader(raw, as_bytes=as_bytes).value(len(raw) - 2 - raw[-1], raw[-1], raw[-2], 0)


class _Reader:
    """``raw``: all of it. Values are counted, as parts may overlap. ``as_bytes``: texts are given as they lie there."""

    def __init__(self, raw: bytes, *, as_bytes: bool = False) -> None:
        self._raw = raw
        self._as_bytes = as_bytes
        self._left = _MAX_VALUES

    def value(self, at: int, width: int, packed: int, depth: int) -> Value:
        """The value at a place. ``packed``: its type, and the width of what it leads to. Raises ModelError."""
        self._left -= 1
        if depth > _MAX_DEPTH or self._left < 0:
            raise LimitExceeded("the options of a custom operator are too deep, or too many")
        kind, inner = packed >> 2, 1 << (packed & 3)
        if kind == 0:
            return None
        if kind in _CODES:
            number = self._number(at, width, kind)
            return bool(number) if kind == _BOOL else number
        return self._behind(kind)(self._target(at, width), inner, kind, depth)

    def _behind(self, kind: int) -> Callable[[int, int, int, int], Value]:
        """How what lies at another place is read."""
        if kind in _INDIRECT:
            return self._indirect
        if kind in _FIXED:
            return lambda at, width, kind, depth: self._same(at, width, *_FIXED[kind], depth)
        if kind in _TYPED:
            return lambda at, width, kind, depth: self._same(at, width, _TYPED[kind], self._count(at, width), depth)
        found = {_KEY: self._key, _STRING: self._text, _BLOB: self._blob, _VECTOR: self._vector, _MAP: self._map}
        if kind not in found:
            raise CorruptModel(f"an option of a custom operator is of type {kind}, which is none of FlexBuffers")
        return found[kind]

    def _indirect(self, at: int, width: int, kind: int, depth: int) -> float | int:
        return self._number(at, width, _INDIRECT[kind])

    def _part(self, at: int, size: int) -> bytes:
        if not 0 <= at <= at + size <= len(self._raw):
            raise CorruptModel(f"an option of a custom operator lies at byte {at} of {len(self._raw)}")
        return self._raw[at : at + size]

    def _number(self, at: int, width: int, kind: int) -> float | int:
        code = _CODES[kind].get(width)
        if code is None:
            raise CorruptModel(f"a number among the options of a custom operator has {width} bytes")
        found: float | int = struct.unpack(code, self._part(at, width))[0]
        return found

    def _target(self, at: int, width: int) -> int:
        return at - int(self._number(at, width, _UINT))

    def _count(self, at: int, width: int) -> int:
        count = int(self._number(at - width, width, _UINT))
        if count > len(self._raw):
            raise CorruptModel(f"a list among the options of a custom operator claims {count} elements")
        return count

    def _key(self, at: int, width: int = 0, kind: int = 0, depth: int = 0) -> str:
        end = self._raw.find(b"\0", max(at, 0))
        if at < 0 or end < 0:
            raise CorruptModel("the name of an option of a custom operator does not end")
        return self._raw[at:end].decode(errors="backslashreplace")

    def _text(self, at: int, width: int, kind: int, depth: int) -> str | bytes:
        found = self._blob(at, width, kind, depth)
        return found if self._as_bytes else found.decode(errors="backslashreplace")

    def _blob(self, at: int, width: int, kind: int, depth: int) -> bytes:
        return self._part(at, self._count(at, width))

    def _same(self, at: int, width: int, kind: int, count: int, depth: int) -> list[Value]:
        """A list of values of one type."""
        return [self.value(at + place * width, width, kind << 2, depth + 1) for place in range(count)]

    def _vector(self, at: int, width: int, kind: int, depth: int) -> list[Value]:
        count = self._count(at, width)
        kinds = self._part(at + count * width, count)
        return [self.value(at + place * width, width, kinds[place], depth + 1) for place in range(count)]

    def _map(self, at: int, width: int, kind: int, depth: int) -> dict[str, Value]:
        values = self._vector(at, width, kind, depth)
        keys, key_width = self._target(at - 3 * width, width), int(self._number(at - 2 * width, width, _UINT))
        names = [self._key(self._target(keys + place * key_width, key_width)) for place in range(len(values))]
        return dict(zip(names, values, strict=True))
