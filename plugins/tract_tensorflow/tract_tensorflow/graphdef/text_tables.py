"""Tables that are filled from a file of text: a key and a value in each line, or the line and its number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.limits import count_node
from tract_core.plugins.keys import Array
from tract_tensorflow.graphdef.protos import Message

_LINE: Final = -2
_NUMBER: Final = -1

_PARSE: Final[Mapping[DatumType, Callable[[str], Any]]] = {
    DatumType.STRING: str,
    DatumType.I32: int,
    DatumType.I64: int,
    DatumType.F32: float,
    DatumType.F64: float,
}


@frozen
class TextTable:
    """How a file of text is read.

    ``key``, ``value``: which column of a line each is, -2 for all of the line, -1 for its number, which begins with
    ``offset``. ``count``: how many lines there are to be, -1 for all. ``delimiter``: what is between columns.
    """

    key: int
    value: int
    count: int
    delimiter: str
    offset: int

    @classmethod
    def of(cls, node: Message) -> TextTable:
        """What a node says of it. Raises CorruptModel."""

        def number(name: str, default: int) -> int:
            return int(node.attr[name].i) if name in node.attr else default

        delimiter = node.attr["delimiter"].s.decode(errors="replace") if "delimiter" in node.attr else "\t"
        found = cls(
            number("key_index", _LINE),
            number("value_index", _NUMBER),
            number("vocab_size", -1),
            delimiter,
            number("offset", 0),
        )
        if min(found.key, found.value) < _LINE or len(delimiter) != 1:
            raise CorruptModel(f"columns {found.key} and {found.value}, with {delimiter[:20]!r} between them")
        return found

    def columns(self, content: bytes, key: DatumType, value: DatumType) -> tuple[Array, Array]:
        """The keys and the values, of these types. Raises ModelError, with the line."""
        lines = content.replace(b"\r", b"").split(b"\n")
        if not lines[-1]:
            lines.pop()
        if len(lines) < self.count:
            raise CorruptModel(f"a file of {self.count} lines is wanted, it has {len(lines)}")
        lines = lines if self.count < 0 else lines[: self.count]
        texts = [self._text(line, place) for place, line in enumerate(lines)]
        return self._column(texts, self.key, key), self._column(texts, self.value, value)

    @staticmethod
    def _text(line: bytes, place: int) -> str:
        count_node()
        try:
            return line.decode()
        except UnicodeDecodeError:
            raise Unsupported(f"line {place + 1} is not UTF-8") from None

    def _column(self, lines: Sequence[str], column: int, kind: DatumType) -> Array:
        if column == _NUMBER:
            if kind is not DatumType.I64:
                raise CorruptModel(f"the numbers of lines are wanted as {kind.short}, they are i64")
            return np.arange(self.offset, self.offset + len(lines))
        parse = _PARSE.get(kind)
        if parse is None or (column == _LINE and kind is not DatumType.STRING):
            raise CorruptModel(f"lines of a text are wanted as {kind.short}")
        found: Array = np.empty(len(lines), kind.numpy)
        for place, line in enumerate(lines):
            parts = [line] if column == _LINE else line.split(self.delimiter)
            wanted = 0 if column == _LINE else column
            if wanted >= len(parts):
                raise CorruptModel(f"line {place + 1} has {len(parts)} columns, column {wanted + 1} is wanted")
            try:
                found[place] = parse(parts[wanted])
            except (ValueError, OverflowError):
                raise CorruptModel(f"line {place + 1} has {parts[wanted][:80]!r}, wanted {kind.short}") from None
        return found
