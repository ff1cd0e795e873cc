"""Bytes by a table of 256 in registers: an instruction finds those in some of its rows of 16, and 0 for all others.

Where only places from 128 on give 0, each half of the table is looked up by itself: "exclusive or" combines what a
place finds in its own row and in those before it, as each row holds how it differs from the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tract_llvm.isa import ByteLookup
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import INDEX
from tract_llvm.language.values import Value

_ROW = 16
_HALF = 128


class ByteTable:
    """A table in registers, or in memory where instructions are written out. ``entries``: as bytes, in memory."""

    def __init__(self, entries: Buffer, lookup: ByteLookup) -> None:
        self._entries, self._lookup = entries, lookup
        self._rows: list[Value] = []
        if entries.function.isa.written_out:
            return
        self._rows = [entries.vector(first, _ROW) for first in range(0, 2 * _HALF, _ROW)]
        if lookup.is_by_sign:
            half = _HALF // _ROW
            halves = self._rows[:half], self._rows[half:]
            spread = [place % _ROW for place in range(lookup.places)]
            rows = [row for one in halves for row in (one[0], *(b ^ a for a, b in pairwise(one)))]
            self._rows = [row.function.shuffled(row, row, spread) for row in rows]

    def at(self, places: Value) -> Value:
        """The entries at places, a single one or some registers of them."""
        function, lookup = places.function, self._lookup
        if not places.lanes or not self._rows:
            return self._entries.gather(function.convert(places, INDEX))
        find = self._by_differences if lookup.is_by_sign else self._in_its_row
        return function.joined(find(places.parts(places.lanes // lookup.places)))

    def _in_its_row(self, places: Sequence[Value]) -> list[Value]:
        found = [self._found(0, one) for one in places]
        for row in range(self._lookup.rows, len(self._rows), self._lookup.rows):
            found = [one | self._found(row, place - row * _ROW) for one, place in zip(found, places, strict=True)]
        return found

    def _by_differences(self, places: Sequence[Value]) -> list[Value]:
        found = [self._found(0, one) for one in places]
        for row in range(1, len(self._rows)):
            first = row * _ROW // _HALF * _HALF
            signed = [_less(place ^ first, row * _ROW - first) for place in places]
            found = [one ^ self._found(row, place) for one, place in zip(found, signed, strict=True)]
        return found

    def _found(self, row: int, places: Value) -> Value:
        return looked_up(self._lookup, self._rows[row : row + self._lookup.rows], places)


def looked_up(lookup: ByteLookup, rows: Sequence[Value], places: Value) -> Value:
    """The bytes of rows at places, as `ByteLookup` says it."""
    function, arguments = places.function, [*(one.ir for one in rows), places.ir]
    callee = function.declared(f"llvm.{lookup.name}", places.ir.type, [one.type for one in arguments])
    return Value(function, function.builder.call(callee, arguments), places.type, places.lanes)


def _less(place: Value, count: int) -> Value:
    """So much less, as a signed number that stops at the least one."""
    return place.function.intrinsic("ssub.sat", place, place.like(count)) if count else place
