"""Change a file of TFLite at random: its bytes, its fields, and parts of it against parts of other files.

Where fields lie is found by walking the tables of the schema; nothing here knows what is right or wrong.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

from mutations import FLOATS, INTEGERS, bytes_changed
from tract_tensorflow.tflite.options import MORE_OPTION_TABLES, OPERATORS, OPTION_TABLES
from tract_tensorflow.tflite.schema import QUANTIZATION_DETAILS, SPARSE_INDICES, TABLES

_CODES = {
    "bool": "<B", "i8": "<b", "u8": "<B", "i16": "<h", "u16": "<H", "i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q",
    "f32": "<f", "f64": "<d",
}  # fmt: skip
_UNIONS = {
    ("Operator", "builtin_options"): OPTION_TABLES,
    ("Operator", "builtin_options2"): MORE_OPTION_TABLES,
    ("QuantizationParameters", "details"): QUANTIZATION_DETAILS,
    ("DimensionMetadata", "array_segments"): SPARSE_INDICES,
    ("DimensionMetadata", "array_indices"): SPARSE_INDICES,
}
MOST_OF_A_LIST = 16
"""Numbers of a list that are changed one by one."""


@dataclass
class Parts:
    """Where the parts of a file lie. Names are as ``Tensor.shape``.

    ``numbers``: name, place and kind; ``lists``: name and place of the count; ``pointers``: name, place of the distance
    and the kind of table that it leads to, with that table's place.
    """

    content: bytes
    numbers: list[tuple[str, int, str]] = field(default_factory=list)
    lists: list[tuple[str, int]] = field(default_factory=list)
    pointers: list[tuple[str, int, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._table("Model", self._number(0, "<I"))

    def _number(self, at: int, code: str) -> int:
        return struct.unpack_from(code, self.content, at)[0]

    def _table(self, kind: str, at: int) -> None:
        vtable = at - self._number(at, "<i")
        count = (self._number(vtable, "<H") - 4) // 2
        self.numbers.append((f"{kind}.vtable", vtable, "u16"))
        places: dict[str, int] = {}
        for slot, text in enumerate(TABLES[kind].split()[:count]):
            name, _, what = text.partition(":")
            self.numbers.append((f"{kind}.slot", vtable + 4 + 2 * slot, "u16"))
            distance = self._number(vtable + 4 + 2 * slot, "<H")
            if distance and name != "-":
                places[name] = at + distance
                self._field(kind, name, what.partition("=")[0], places)

    def _field(self, table: str, name: str, kind: str, places: dict[str, int]) -> None:
        at, label = places[name], f"{table}.{name}"
        if kind in _CODES:
            self.numbers.append((label, at, kind))
        elif kind == "union":
            number = self._number(places[f"{name}_type"], "<B")
            self._pointer(label, at, _UNIONS[table, name][number])
        elif kind.startswith("["):
            self._list(label, at + self._number(at, "<I"), kind.strip("[]"))
        elif kind != "text":
            self._pointer(label, at, kind)

    def _pointer(self, label: str, at: int, kind: str) -> None:
        target = at + self._number(at, "<I")
        self.pointers.append((label, at, kind, target))
        self._table(kind, target)

    def _list(self, label: str, at: int, kind: str) -> None:
        self.lists.append((label, at))
        count, size = self._number(at, "<I"), struct.calcsize(_CODES.get(kind, "<I"))
        places = range(at + 4, at + 4 + count * size, size)
        if kind in _CODES:
            self.numbers += [(label, place, kind) for place in places[:MOST_OF_A_LIST]]
        elif kind != "text":
            for place in places:
                self._pointer(label, place, kind)


def changed(files: list[Parts], chance: random.Random) -> bytes:
    """The content of a file: one of them with a few changes, in one case of ten also in its bytes."""
    one = chance.choice(files)
    content = bytearray(one.content)
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        _graft(content, one, chance.choice(files), chance)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 6))):
        chance.choice(_CHANGES)(content, one, chance)
    return bytes_changed(bytes(content), chance) if chance.random() < 0.1 else bytes(content)


def _graft(content: bytearray, one: Parts, other: Parts, chance: random.Random) -> None:
    """A table becomes another one of its kind: of the same file, or of another one, which is put behind it."""
    _, at, kind, _ = chance.choice(one.pointers)
    source = one if chance.random() < 0.5 else other
    targets = [target for _, _, name, target in source.pointers if name == kind]
    if not targets:
        return
    base = 0
    if source is not one:
        content += b"\0" * (-len(content) % 16)
        base = len(content)
        content += other.content
    distance = base + chance.choice(targets) - at
    content[at : at + 4] = struct.pack("<I", distance % (1 << 32))


def _number(content: bytearray, one: Parts, chance: random.Random) -> None:
    """A number becomes another one."""
    _put(content, *chance.choice(one.numbers)[1:], chance)


def _meaning(content: bytearray, one: Parts, chance: random.Random) -> None:
    """The same for what says what a graph means: sizes, types, options, which tensors operators read."""
    named = [
        number for number in one.numbers if not number[0].endswith((".vtable", ".slot")) and number[0] != "Buffer.data"
    ]
    _put(content, *chance.choice(named)[1:], chance)


def _put(content: bytearray, at: int, kind: str, chance: random.Random) -> None:
    code = _CODES[kind]
    if kind in ("f32", "f64"):
        new = chance.choice(FLOATS)
    else:
        size = 8 * struct.calcsize(code)
        low, high = (-(1 << size - 1), 1 << size - 1) if kind[0] == "i" else (0, 1 << size)
        old = struct.unpack_from(code, content, at)[0]
        new = chance.choice((chance.choice(INTEGERS), old + 1, old - 1, old * 2, -old, chance.randrange(30)))
        new = min(max(new, low), high - 1)
    content[at : at + struct.calcsize(code)] = struct.pack(code, new)


def _swap_operator(content: bytearray, one: Parts, chance: random.Random) -> None:
    """An operator becomes another one."""
    codes = [number for number in one.numbers if number[0].startswith("OperatorCode.") and "builtin" in number[0]]
    number = chance.randrange(len(OPERATORS))
    for _, at, kind in codes[: 2 if chance.random() < 0.7 else 1]:
        content[at : at + struct.calcsize(_CODES[kind])] = struct.pack(
            _CODES[kind], min(number, 127 if kind == "i8" else 1 << 30)
        )


def _exchange(content: bytearray, one: Parts, chance: random.Random) -> None:
    """A number of one place takes that of another of its kind."""
    _, at, kind = chance.choice(one.numbers)
    _, other, _ = chance.choice([number for number in one.numbers if number[2] == kind])
    size = struct.calcsize(_CODES[kind])
    content[at : at + size] = content[other : other + size]


def _shorten(content: bytearray, one: Parts, chance: random.Random) -> None:
    """A list gets another length."""
    _, at = chance.choice(one.lists)
    _put(content, at, "u32", chance)


_CHANGES = (_number, _meaning, _meaning, _meaning, _meaning, _swap_operator, _exchange, _shorten)
