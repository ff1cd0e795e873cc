"""What Windows says of the cores and the caches of a machine: a table, of which up to 64 processors are told.

Source: ``GetLogicalProcessorInformation`` and ``SYSTEM_LOGICAL_PROCESSOR_INFORMATION`` of ``winnt.h``, for 64 bits.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from struct import Struct
from typing import Final

from tract_core.frozen import frozen

_ROW: Final = Struct("<QIxxxxBBHII4x")
"""A mask of processors, and what they share; where that is a cache, its level, ways, bytes of a line, bytes, kind."""

_CORE, _CACHE = 0, 2
"""What they share."""

_INSTRUCTIONS: Final = 1
"""The kind of a cache that holds no data."""


@frozen
class TableOfWindows:
    """``cores``: the processors of each core, a bit each. ``caches``: bytes by level, of the first of each level."""

    cores: tuple[int, ...]
    caches: Mapping[int, int]


def table_from(content: bytes) -> TableOfWindows:
    """What the rows of the table say."""
    rows = list(_ROW.iter_unpack(content[: len(content) // _ROW.size * _ROW.size]))
    caches: dict[int, int] = {}
    for _, shared, level, _, _, size, kind in rows:
        if shared == _CACHE and kind != _INSTRUCTIONS:
            caches.setdefault(level, size)
    return TableOfWindows(tuple(mask for mask, shared, *_ in rows if shared == _CORE), caches)


@cache
def table_of_windows() -> TableOfWindows:
    """That of this machine; without cores and caches where Windows does not say."""
    return table_from(_content())


def _content() -> bytes:
    if sys.platform != "win32":
        return b""
    import ctypes

    ask = ctypes.WinDLL("kernel32").GetLogicalProcessorInformation
    size = ctypes.c_uint32()
    ask(None, ctypes.byref(size))  # which says how many bytes there are
    found = ctypes.create_string_buffer(size.value)
    return found.raw[: size.value] if size.value and ask(found, ctypes.byref(size)) else b""
