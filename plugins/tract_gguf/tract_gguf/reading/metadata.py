"""What a file says of its model: pairs of a key and a value."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

import numpy as np

from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.plugins.keys import Array
from tract_gguf.reading.cursor import Cursor, numbers_in_time

Value = bool | int | float | str | Array | tuple["Value", ...]
"""Arrays of numbers are arrays of NumPy, read-only; those of texts and of arrays are tuples."""

MAX_KEY: Final = 65535
"""Characters of a key."""

MAX_DEPTH: Final = 4
"""Arrays inside one another."""

_BOOL, _TEXT, _ARRAY = 7, 8, 9

_NUMBERS: Final = {
    0: ("<B", "<u1"),
    1: ("<b", "<i1"),
    2: ("<H", "<u2"),
    3: ("<h", "<i2"),
    4: ("<I", "<u4"),
    5: ("<i", "<i4"),
    6: ("<f", "<f4"),
    10: ("<Q", "<u8"),
    11: ("<q", "<i8"),
    12: ("<d", "<f8"),
}
"""How numbers are stored, by the code of their type: one alone, and many."""

_STRUCTS: Final = {code: struct.Struct(form) for code, (form, _) in _NUMBERS.items()}

_LEAST: Final = {**{code: one.size for code, one in _STRUCTS.items()}, _BOOL: 1, _TEXT: 8, _ARRAY: 12}
"""Bytes that a value of each type takes at least."""


def read_metadata(cursor: Cursor, count: int) -> Mapping[str, Value]:
    """That many pairs. Raises CorruptModel, also for a key that is there twice, and LimitExceeded."""
    found: dict[str, Value] = {}
    for number in numbers_in_time(count):
        key = cursor.name(f"key {number} of the metadata", MAX_KEY)
        if key in found:
            raise CorruptModel(f"the metadata have the key {key!r:.80} twice")
        found[key] = _value(cursor, cursor.u32(f"the type of {key!r:.80}"), f"the value of {key!r:.80}", 0)
    return found


def _value(cursor: Cursor, code: int, what: str, depth: int) -> Value:
    if code in _STRUCTS:
        return cursor.number(_STRUCTS[code], what)
    if code == _BOOL:
        return bool(_bools(cursor, 1, what)[0])
    if code == _TEXT:
        return cursor.text(what)
    if code == _ARRAY:
        return _array(cursor, what, depth)
    raise CorruptModel(f"{what} is of type {code}; the types are 0 to 12")


def _array(cursor: Cursor, what: str, depth: int) -> Value:
    if depth >= MAX_DEPTH:
        raise LimitExceeded(f"{what} has more than {MAX_DEPTH} arrays inside one another")
    code = cursor.u32(what)
    if code not in _LEAST:
        raise CorruptModel(f"{what} is an array of type {code}; the types are 0 to 12")
    count = cursor.count(_LEAST[code], f"the length of {what}")
    if code in _NUMBERS:
        return _numbers(cursor, _NUMBERS[code][1], count, what)
    if code == _BOOL:
        return _bools(cursor, count, what)
    if code == _TEXT:
        return cursor.texts(count, what)
    return tuple(_array(cursor, what, depth + 1) for _ in numbers_in_time(count))


def _numbers(cursor: Cursor, form: str, count: int, what: str) -> Array:
    kind = np.dtype(form)
    first = cursor.take(count * kind.itemsize, what)
    found = np.frombuffer(cursor.content, kind, count, first).copy()  # what lies anywhere in the file is not aligned
    found.flags.writeable = False
    return found


def _bools(cursor: Cursor, count: int, what: str) -> Array:
    numbers = _numbers(cursor, "<u1", count, what)
    if numbers.max(initial=0) > 1:
        raise CorruptModel(f"{what} is {numbers.max()}, wanted 0 or 1 for a boolean")
    return numbers.view(np.bool_)
