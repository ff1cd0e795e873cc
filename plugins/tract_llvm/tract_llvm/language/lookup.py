"""Bytes by a table of 256 in registers: an instruction finds those in some of its rows of 16, and 0 for all others.

Where only places from 128 on give 0, each half of the table is looked up by itself: "exclusive or" combines what a
place finds in its own row and in those before it, as each row holds how it differs from the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from operator import or_, xor

from tract_llvm.isa import Lookup
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import INDEX
from tract_llvm.language.values import Value

_ROW = 16
_HALF = 128


class ByteTable:
    """A table in registers. ``entries``: in memory, as bytes."""

    def __init__(self, entries: Buffer, lookup: Lookup) -> None:
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

    def __getitem__(self, places: Value) -> Value:
        """The entries at places, a single one or some registers of them."""
        function, lookup = places.function, self._lookup
        if not places.lanes or not self._rows:
            return self._entries.gather(function.convert(places, INDEX))
        find = self._by_differences if lookup.is_by_sign else self._in_its_row
        return function.joined(find(places.parts(places.lanes // lookup.places)))

    def _in_its_row(self, places: Sequence[Value]) -> list[Value]:
        step = self._lookup.rows
        return [
            reduce(or_, (self._found(row, one - row * _ROW) for row in range(0, len(self._rows), step)))
            for one in places
        ]

    def _by_differences(self, places: Sequence[Value]) -> list[Value]:
        found: list[Value] = []
        for first in (0, _HALF):
            signed = [one ^ first for one in places]
            for row in range(first // _ROW, (first + _HALF) // _ROW):
                below = row * _ROW - first
                parts = [self._found(row, _less(one, below)) for one in signed]
                found = list(map(xor, found, parts)) if found else parts
        return found

    def _found(self, row: int, places: Value) -> Value:
        rows = self._rows[row : row + self._lookup.rows]
        return places.function.looked_up(self._lookup, rows, places)


def _less(place: Value, count: int) -> Value:
    """So much less, as a signed number that stops at the least one."""
    return place.function.intrinsic("ssub.sat", place, place.like(count)) if count else place
