"""Flatbuffers, read in place: every offset is looked at before it is followed.

A table is a place in the file, from which a distance leads back to a list of places of its fields (its vtable); lists,
texts and other tables lie behind distances as well. Source: the description of FlatBuffers' binary format.

Parts of a file may overlap, so that a small one can claim to hold much. What is read is counted, and reading ends when
it is many times as much as the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from struct import Struct
from typing import Any, Final

import numpy as np

from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.schema import TABLES

_U16, _U32, _I32 = Struct("<H"), Struct("<I"), Struct("<i")

_NUMBERS: Final = {
    "bool": np.dtype(np.bool_),
    **{f"{kind}{8 * size}": np.dtype(f"<{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)},
    **{f"f{8 * size}": np.dtype(f"<f{size}") for size in (4, 8)},
}

_AGAIN: Final = 64
"""How many times a file may be read over. Weights are counted once, and little else is shared."""


@frozen
class Field:
    """A field of a table.

    ``slot``: its number in the table. ``kind``: as `schema` writes it, without brackets; ``many``: whether it is a list
    of these. ``default``: of a number.
    """

    slot: int
    kind: str
    many: bool
    default: float


@cache
def fields_of(table: str) -> Mapping[str, Field]:
    """The fields of a table, by name."""
    found: dict[str, Field] = {}
    for slot, text in enumerate(TABLES[table].split()):
        name, _, kind = text.partition(":")
        kind, _, default = kind.partition("=")
        if name != "-":
            found[name] = Field(slot, kind.strip("[]"), kind.startswith("["), float(default or 0))
    return found


class Flatbuffer:
    """The content of a file."""

    def __init__(self, content: Any) -> None:
        self._content = memoryview(content)
        self._left = _AGAIN * len(self._content) + (1 << 16)

    def root(self, table: str) -> FlatTable:
        """The table that the file is. Raises CorruptModel."""
        return FlatTable(self, table, self.follow(0))

    def unpack(self, form: Struct, at: int) -> int:
        """A number at a place. Raises CorruptModel outside the file."""
        if not 0 <= at <= len(self._content) - form.size:
            raise CorruptModel(f"the file ends before byte {at}, which it points to: it is cut off, or damaged")
        return int(form.unpack_from(self._content, at)[0])

    def follow(self, at: int) -> int:
        """The place that lies a distance behind ``at``, which holds the distance."""
        return at + self.unpack(_U32, at)

    def list_at(self, at: int, size: int) -> tuple[int, int]:
        """Where the elements of a list are, of ``size`` bytes each, and how many. Raises ModelError."""
        count = self.unpack(_U32, at)
        if count * size > len(self._content) - at - 4:
            raise CorruptModel(f"a list at byte {at} claims {count} elements, for which the file is too short")
        self.spend(count * size)
        return at + 4, count

    def spend(self, count: int) -> None:
        """Count bytes that are read. Raises LimitExceeded."""
        self._left -= count
        if self._left < 0:
            raise LimitExceeded("its parts overlap so often that they would be many times as large as the file")

    def numbers(self, at: int, kind: np.dtype[Any]) -> Array:
        """The list of numbers at a place: a view of the file."""
        start, count = self.list_at(at, kind.itemsize)
        return np.frombuffer(self._content, kind, count, start)

    def part(self, start: int, size: int) -> Array:
        """Bytes of the file, as a view. Raises CorruptModel outside of it."""
        if not 0 <= start <= start + size <= len(self._content):
            raise CorruptModel(f"{size} bytes from byte {start} on are not in the file: it is cut off, or damaged")
        return np.frombuffer(self._content, np.uint8, size, start)

    def text(self, at: int) -> str:
        """The text at a place; bytes that are no UTF-8 are written as escapes."""
        start, count = self.list_at(at, 1)
        return bytes(self._content[start : start + count]).decode(errors="backslashreplace")


class FlatTable:
    """A table of a file, whose fields are read when they are asked for. ``name``: its kind, as in `schema`.

    What is asked for is a field of that kind: another name is a mistake of who asks, a KeyError.
    """

    __slots__ = ("_at", "_file", "_slots", "_vtable", "name")

    def __init__(self, file: Flatbuffer, name: str, at: int) -> None:
        self.name = name
        self._file = file
        self._at = at
        self._vtable = at - file.unpack(_I32, at)
        self._slots = (file.unpack(_U16, self._vtable) - 4) // 2
        file.spend(8)

    @property
    def fields(self) -> Mapping[str, Field]:
        """What it may say."""
        return fields_of(self.name)

    def number(self, name: str) -> float | int | bool:
        """A number, or truth value; the default of the field where the file has none."""
        field = self.fields[name]
        kind, place = _NUMBERS[field.kind], self._place(field)
        if place is None:
            return kind.type(field.default).item()
        return self._file.part(place, kind.itemsize).view(kind)[0].item()

    def integer(self, name: str) -> int:
        """The same of a field that is an integer."""
        return int(self.number(name))

    def text(self, name: str) -> str:
        """A text; an empty one where the file has none."""
        place = self._place(self.fields[name])
        return "" if place is None else self._file.text(self._file.follow(place))

    def numbers(self, name: str) -> Array:
        """A list of numbers, as a view of the file; an empty one where the file has none."""
        field = self.fields[name]
        kind, place = _NUMBERS[field.kind], self._place(field)
        return np.empty(0, kind) if place is None else self._file.numbers(self._file.follow(place), kind)

    def has(self, name: str) -> bool:
        """Whether the file has the field."""
        return self._place(self.fields[name]) is not None

    def table(self, name: str) -> FlatTable | None:
        """Another table, where the file has it."""
        field = self.fields[name]
        place = self._place(field)
        return None if place is None else FlatTable(self._file, field.kind, self._file.follow(place))

    def union(self, name: str, kinds: Sequence[str]) -> FlatTable | None:
        """A table of one of several kinds; ``kinds``: their names by the number that the field ``NAME_type`` says.

        Raises CorruptModel for a number that is none of these.
        """
        kind, place = self.integer(f"{name}_type"), self._place(self.fields[name])
        if not 0 <= kind < len(kinds):
            raise CorruptModel(f"{name} of {self.name} is of kind {kind}, kinds up to {len(kinds) - 1} are known")
        if not kind or place is None:
            return None
        return FlatTable(self._file, kinds[kind], self._file.follow(place))

    def tables(self, name: str) -> Iterator[FlatTable]:
        """A list of tables."""
        field = self.fields[name]
        for place in self._pointers(field):
            yield FlatTable(self._file, field.kind, self._file.follow(place))

    def texts(self, name: str) -> Iterator[str]:
        """A list of texts."""
        for place in self._pointers(self.fields[name]):
            yield self._file.text(self._file.follow(place))

    def length(self, name: str) -> int:
        """How many elements a list has."""
        field = self.fields[name]
        place = self._place(field)
        return 0 if place is None else self._file.unpack(_U32, self._file.follow(place))

    def _pointers(self, field: Field) -> range:
        place = self._place(field)
        if place is None:
            return range(0)
        start, count = self._file.list_at(self._file.follow(place), 4)
        return range(start, start + 4 * count, 4)

    def _place(self, field: Field) -> int | None:
        """Where the field lies, or its distance; ``None`` for one that the file leaves out."""
        if field.slot >= self._slots:
            return None
        distance = self._file.unpack(_U16, self._vtable + 4 + 2 * field.slot)
        return self._at + distance if distance else None
