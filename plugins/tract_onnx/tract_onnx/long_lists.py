"""Long lists of numbers or texts in an attribute: found and decoded in whole blocks, not element by element.

A protocol buffer of version 2 of its language writes a list as one field per element: a byte that says which field it
is, and the element. Whole blocks of such a *run* are looked at together. Lists that are written as one field with all
elements (*packed*) are known too.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np

from tract_core.plugins.keys import Array

Buffer = mmap.mmap | bytes
"""The bytes of a model file."""

BLOCK: Final = 1 << 18
"""Bytes that are looked at together: temporary arrays take some times as much."""

MAX_VARINT: Final = 10
"""Bytes that one integer may take."""


_LONG_TEXT: Final = 2 + 0x80
"""Bytes from which on a text, with what is in front of it, says its length in more than one byte."""


class ListKind(IntEnum):
    """What a list holds. The values are the numbers of the fields of an attribute."""

    FLOATS = 7
    INTS = 8
    STRINGS = 9


class Run(NamedTuple):
    """A list in a file: where its bytes are, how many elements it has, and whether they are packed."""

    kind: ListKind
    offset: int
    length: int
    elements: int
    is_packed: bool


def find_run(buffer: Buffer, kind: ListKind, start: int, end: int) -> Run:
    """The elements, one field each, from ``start`` on; there may be none. It ends where something else comes."""
    position, count = start, 0
    while position < end:
        block = np.frombuffer(buffer, np.uint8, min(BLOCK, end - position), position)
        sizes = _ELEMENTS[kind](block)
        if not len(sizes):
            break
        position += int(sizes.sum())
        count += len(sizes)
    return Run(kind, start, position - start, count, False)


def packed_run(buffer: Buffer, kind: ListKind, start: int, end: int) -> Run:
    """The elements in a field that holds all of them; there are none when the bytes cannot be that."""
    nothing = Run(kind, start, 0, 0, True)
    if kind is ListKind.FLOATS:
        return Run(kind, start, end - start, (end - start) // 4, True) if (end - start) % 4 == 0 else nothing
    count, last = 0, -1
    for offset in range(start, end, BLOCK):
        block = np.frombuffer(buffer, np.uint8, min(BLOCK, end - offset), offset)
        ends = np.flatnonzero(block < 0x80) + (offset - start)
        if len(ends) and np.diff(ends, prepend=last).max() > MAX_VARINT:
            return nothing
        count, last = count + len(ends), int(ends[-1]) if len(ends) else last
    return Run(kind, start, end - start, count, True) if last == end - start - 1 else nothing


class LongList(NamedTuple):
    """A list that stays in the file until it is asked for; each question reads it again."""

    buffer: Buffer
    run: Run

    @property
    def itemsize(self) -> int:
        """Bytes that each element takes in the array that is made of them."""
        return 8 if self.run.kind is ListKind.INTS else 4

    def numbers(self) -> Array:
        """The elements, in memory of their own: f32 or i64."""
        buffer, run = self
        if run.is_packed and run.kind is ListKind.FLOATS:
            return np.frombuffer(buffer, "<f4", run.elements, run.offset).astype(np.float32)
        result = np.empty(run.elements, np.float32 if run.kind is ListKind.FLOATS else np.int64)
        place = 0
        for block, sizes in _blocks(buffer, run):
            values = _floats(block) if run.kind is ListKind.FLOATS else _ints(block, sizes, run)
            result[place : place + len(sizes)] = values
            place += len(sizes)
        return result

    def distinct_texts(self) -> tuple[list[bytes], Array]:
        """The distinct texts, in no order, and for each element the place of its text among them (i32)."""
        places: dict[bytes, int] = {}
        codes = np.empty(self.run.elements, np.int32)
        done = 0
        for block, sizes in _blocks(self.buffer, self.run):
            ends = np.cumsum(sizes)
            lengths = sizes - np.where(sizes < _LONG_TEXT, 2, 3)
            for length in np.unique(lengths).tolist():
                here = np.flatnonzero(lengths == length)
                texts, own = _distinct(block, ends[here] - length, length)
                codes[done + here] = np.array([places.setdefault(text, len(places)) for text in texts], np.int32)[own]
            done += len(sizes)
        return list(places), codes


def _blocks(buffer: Buffer, run: Run) -> Iterator[tuple[Array, Array]]:
    """The bytes of a run, in pieces of whole elements, with the bytes that each element takes."""
    position, end = run.offset, run.offset + run.length
    while position < end:
        block = np.frombuffer(buffer, np.uint8, min(BLOCK, end - position), position)
        sizes = _packed_ints(block) if run.is_packed else _ELEMENTS[run.kind](block)
        size = int(sizes.sum())
        yield block[:size], sizes
        position += size
    forget(buffer, run)


def forget(buffer: Buffer, run: Run) -> None:
    """Let the system have the memory back in which it holds a part of a mapped file; it can be read again."""
    if isinstance(buffer, mmap.mmap) and sys.platform != "win32":  # which decides that by itself
        start = run.offset // mmap.PAGESIZE * mmap.PAGESIZE
        buffer.madvise(mmap.MADV_DONTNEED, start, run.offset + run.length - start)


def _float_sizes(block: Array) -> Array:
    """The bytes of each of the leading fields that hold one float."""
    tags = block[: len(block) // 5 * 5 : 5]
    return np.full(_leading(tags == _tag(ListKind.FLOATS, 5)), 5)


def _int_sizes(block: Array) -> Array:
    """The bytes of each of the leading fields that hold one integer: a byte that says so, then seven bits in each byte.

    Only the last byte of an integer is less than 128, and so is the one in front of it.
    """
    small = np.flatnonzero(block < 0x80)
    pairs = len(small) // 2 * 2
    tags, ends = small[0:pairs:2], small[1:pairs:2]
    fits = (block[tags] == _tag(ListKind.INTS, 0)) & (ends - tags <= MAX_VARINT)
    fits &= tags == np.append(0, ends[:-1] + 1)[: len(tags)]
    count = _leading(fits)
    return (ends - tags + 1)[:count]


def _packed_ints(block: Array) -> Array:
    return np.diff(np.flatnonzero(block < 0x80), prepend=-1)


def _text_sizes(block: Array) -> Array:
    """The bytes of each of the leading fields that hold one text that lies in the block whole."""
    tag = _tag(ListKind.STRINGS, 2)
    tags = np.flatnonzero(block[:-1] == tag)
    sizes = block[tags + 1].astype(np.int64) + 2
    follows = tags == np.append(0, (tags + sizes)[:-1])[: len(tags)]
    is_short = sizes < _LONG_TEXT
    count = _leading(follows & is_short & (tags + sizes <= len(block)))
    after = int(sizes[:count].sum())
    if count == len(tags) or tags[count] > after or (tags[count] == after and is_short[count]):
        return sizes[:count]
    return _text_sizes_one_by_one(block)  # a text holds the byte that texts begin with, or is long


def _text_sizes_one_by_one(block: Array) -> Array:
    content, tag = block.tobytes(), _tag(ListKind.STRINGS, 2)
    sizes: list[int] = []
    position = 0
    while position + 1 < len(content) and content[position] == tag:
        length, header = content[position + 1], 2
        if length >= 0x80:
            if position + 2 >= len(content) or content[position + 2] >= 0x80:
                break
            length, header = length & 0x7F | content[position + 2] << 7, 3
        if position + header + length > len(content) or (header == 3 and length < 0x80):
            break
        sizes.append(header + length)
        position += header + length
    return np.array(sizes, np.int64)


_ELEMENTS: Final = {
    ListKind.FLOATS: _float_sizes,
    ListKind.INTS: _int_sizes,
    ListKind.STRINGS: _text_sizes,
}


def _tag(kind: ListKind, wire_type: int) -> int:
    return kind << 3 | wire_type


def _leading(fits: Array) -> int:
    """How many are true before the first that is not."""
    return len(fits) if fits.all() else int(np.argmin(fits))


def _floats(block: Array) -> Array:
    return np.ascontiguousarray(block.reshape(-1, 5)[:, 1:]).view("<f4").reshape(-1)


def _ints(block: Array, sizes: Array, run: Run) -> Array:
    ends = np.cumsum(sizes)
    digits = sizes if run.is_packed else sizes - 1
    starts = ends - digits
    values = (block[starts] & 0x7F).astype(np.uint64)
    for place in range(1, int(digits.max(initial=0))):
        longer = np.flatnonzero(digits > place)
        values[longer] |= (block[starts[longer] + place] & 0x7F).astype(np.uint64) << np.uint64(7 * place)
    return values.view(np.int64)


def _distinct(block: Array, starts: Array, length: int) -> tuple[list[bytes], Array]:
    """The distinct texts among those of one length, and for each of them which it is."""
    if not length:
        return [b""], np.zeros(len(starts), np.int64)
    rows = block[starts[:, None] + np.arange(length)]
    found, own = np.unique(rows.view(f"S{length}").reshape(-1), return_inverse=True)
    texts: list[Any] = found.tolist()
    return [text.ljust(length, b"\0") for text in texts], own
