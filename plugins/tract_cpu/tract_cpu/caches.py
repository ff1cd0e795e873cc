"""The caches of this machine, as far as the system tells: loops are cut by them, so that they are used well."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from typing import Final

from tract_core.frozen import frozen
from tract_core.machine import sysctl

CACHE_LINE: Final = 64
"""Bytes of a line."""

BYTES_AHEAD: Final = 4096
"""While memory is read that no cache holds, it is asked for what lies so many bytes further on: answers take that long.

Processors ask by themselves, but only up to the end of a page, which has as many bytes.
"""

_PAGE: Final = 4096
"""Lines so many bytes apart belong to one set of the first level: it is looked up by what pages leave as it is."""

_USUAL: Final = {"L1": 32 << 10, "L2": 1 << 20, "L3": 8 << 20}

_NAMES: Final = {"L1": "l1dcachesize", "L2": "l2cachesize", "L3": "l3cachesize"}
"""What macOS calls them."""


@frozen
class Caches:
    """Bytes of the first and of the second level, of one core."""

    first: int
    second: int

    def keeps_lines(self, count: int, apart: int) -> bool:
        """Whether the first level keeps so many lines, so many bytes apart, and has as much room left in each set."""
        lines = {one * apart // CACHE_LINE for one in range(count)}
        places = [one % (_PAGE // CACHE_LINE) for one in lines]
        return max(map(places.count, places), default=0) * 2 * _PAGE <= self.first


@cache
def caches() -> Caches:
    """Those of the machine that this runs on."""
    sizes = sizes_of_caches()
    return Caches(*(sizes.get(level, _USUAL[level]) for level in ("L1", "L2")))


def sizes_of_caches(folder: str | os.PathLike[str] = "/sys/devices/system/cpu/cpu0/cache") -> dict[str, int]:
    """Bytes of each level of the cache for data, as the system says; the usual ones where it does not.

    ``folder``: where Linux says so.
    """
    if sys.platform == "win32":
        from tract_cpu.table_of_windows import table_of_windows

        found = {f"L{level}": size for level, size in table_of_windows().caches.items()}
    elif sys.platform == "darwin":
        found = {level: size for level, name in _NAMES.items() if (size := _of_macos(name))}
        found["L2"] = found.get("L2", _USUAL["L2"]) // (_of_macos("cpusperl2") or 1)
    else:
        found = _of_linux(folder)
    return found or dict(_USUAL)


def _of_macos(name: str) -> int | None:
    """That of the fast cores, where some are slower."""
    return sysctl(f"hw.perflevel0.{name}") or sysctl(f"hw.{name}")


def _of_linux(folder: str | os.PathLike[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    with suppress(OSError, ValueError, KeyError):
        for name in sorted(os.listdir(folder)):
            index = os.path.join(folder, name)
            if name.startswith("index") and _said(index, "type") != "Instruction":
                size = _said(index, "size")
                unit = {"K": 10, "M": 20, "G": 30}[size[-1]]
                found[f"L{_said(index, 'level')}"] = int(size[:-1]) << unit
    return found


def _said(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read().strip()
