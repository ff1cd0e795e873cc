"""Sorted tables of keys and values, as LevelDB has them: the form of the index of a checkpoint.

The file ends with where a block is that says where the other blocks are. A block holds entries in the order of their
keys, each with how many bytes its key has in common with the one before, and ends with a list of places that is of no
use to who reads everything. Behind each block follow a byte for its compression and a checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import google_crc32c

from tract_core.errors import CorruptModel, LimitExceeded, Unsupported
from tract_core.limits import count_node
from tract_core.plugins.keys import Array

_MAGIC: Final = 0xDB4775248B80FB57
_FOOTER: Final = 48
_TRAILER: Final = 5
_MOST_KEY: Final = 1 << 16
"""Bytes of a key."""

_EXTEND: Final[Callable[[int, bytes | Array], int]] = cast("Any", google_crc32c).extend

_COMPRESSIONS: Final = {1: "Snappy", 2: "Zlib", 4: "Zstandard"}


def entries(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a table, in order. Raises CorruptModel, Unsupported or LimitExceeded."""
    if len(content) < _FOOTER or struct.unpack_from("<Q", content, len(content) - 8)[0] != _MAGIC:
        raise CorruptModel("it is no table of keys and values, or its end is missing")
    _, place = _handle(content, len(content) - _FOOTER)
    (offset, size), _ = _handle(content, place)
    for _, handle in _block(content, offset, size):
        (first, count), _ = _handle(handle, 0)
        yield from _block(content, first, count)


def masked_checksum(*parts: bytes | Array) -> int:
    """The CRC-32C of bytes, changed as tables hold it: so that it is no checksum of what contains it."""
    found = 0
    for part in parts:
        found = int(_EXTEND(found, part))
    return (((found >> 15) | (found << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _handle(content: bytes, place: int) -> tuple[tuple[int, int], int]:
    """Where a block is and how long; and where what follows begins."""
    offset, place = varint(content, place)
    size, place = varint(content, place)
    return (offset, size), place


def varint(content: bytes, place: int) -> tuple[int, int]:
    """A number in groups of 7 bits, the lowest first, and where what follows begins. Raises CorruptModel."""
    found = 0
    for shift in range(0, 64, 7):
        if place >= len(content):
            raise CorruptModel("a number ends beyond the end")
        byte = content[place]
        place += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, place
    raise CorruptModel("a number has more than 64 bits")


def _block(content: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    if offset + size + _TRAILER > len(content):
        raise CorruptModel(f"a block of {size} bytes at {offset} goes beyond the {len(content)} bytes of the table")
    block, kind = content[offset : offset + size], content[offset + size]
    if kind:
        raise Unsupported(f"a block is compressed with {_COMPRESSIONS.get(kind, f'method {kind}')}")
    (wanted,) = struct.unpack_from("<I", content, offset + size + 1)
    if masked_checksum(block, bytes([kind])) != wanted:
        raise CorruptModel(f"the block at {offset} is damaged: its checksum is another one")
    if size < 4:
        raise CorruptModel(f"a block has {size} bytes")
    (restarts,) = struct.unpack_from("<I", block, size - 4)
    end = size - 4 - 4 * restarts
    if end < 0:
        raise CorruptModel(f"a block of {size} bytes has {restarts} places in its list")
    yield from _entries(block, end)


def _entries(block: bytes, end: int) -> Iterator[tuple[bytes, bytes]]:
    place, key = 0, b""
    while place < end:
        count_node()
        shared, place = varint(block, place)
        own, place = varint(block, place)
        length, place = varint(block, place)
        if shared > len(key) or place + own + length > end:
            raise CorruptModel("an entry goes beyond its block, or has more of the key before it than there is")
        if shared + own > _MOST_KEY:
            raise LimitExceeded(f"a key has {shared + own} bytes, {_MOST_KEY} are allowed")
        key = key[:shared] + block[place : place + own]
        place += own
        yield key, block[place : place + length]
        place += length
