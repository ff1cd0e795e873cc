"""The caches of this machine, as far as the system tells: loops are cut by them, so that they are used well."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from tract_core.frozen import frozen

CACHE_LINE: Final = 64
"""Bytes of a line."""

_PAGE: Final = 4096
"""Lines so many bytes apart belong to one set of the first level: it is looked up by what pages leave as it is."""

_USUAL: Final = {"L1": 32 << 10, "L2": 1 << 20, "L3": 8 << 20}


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


def sizes_of_caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> dict[str, int]:
    """Bytes of each level of the cache for data, as the system says; the usual ones where it does not."""
    found: dict[str, int] = {}
    with suppress(OSError, ValueError, KeyError):
        for index in sorted(folder.glob("index*")):
            if (index / "type").read_text().strip() != "Instruction":
                size = (index / "size").read_text().strip()
                unit = {"K": 10, "M": 20, "G": 30}[size[-1]]
                found[f"L{(index / 'level').read_text().strip()}"] = int(size[:-1]) << unit
    return found or dict(_USUAL)
