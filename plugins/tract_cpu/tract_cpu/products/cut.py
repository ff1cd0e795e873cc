"""How the rows of a product are cut into tiles, and these into tasks: by sizes and caches."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tract_core.dims import Dim, bounds, ceil_div, symbols_of
from tract_core.frozen import frozen
from tract_cpu.caches import caches
from tract_cpu.kernels.sums import SMALL_TILES, Tile

ENOUGH_TASKS: Final = 16
"""Into so many tasks a product is cut, where it has as many tiles: so that threads get about as much each."""

SMALL_PIECES: Final = (6, 3, 1)
"""How many positions at a time compute what is left over, where it is not known how many that are."""

_TILES: Final = 8
"""How many tiles a task has whose size only a run tells."""


def evenly(count: int, most: int) -> int:
    """How many each part has at most, where ``count``, not 0, is cut into as few as can be of at most ``most``."""
    return -(-count // -(-count // most))


PIECE: Final = 768
"""How much of a long inner axis is summed at once, at least."""


@frozen
class RowCut:
    """``rests``: heights of the tiles behind whole ones. ``whole``: rows of whole tiles; ``count``: of all tiles."""

    tile: Tile
    rests: tuple[int, ...]
    whole: Dim
    count: Dim


def cut_rows(tile: Tile, rows: Dim) -> RowCut:
    """Tiles of at most as many rows as the given one: all about as high, where it is known how many rows there are."""
    if not isinstance(rows, int):
        smaller = tuple(one for one in SMALL_TILES if one < tile.rows)
        return RowCut(tile, smaller, rows - rows % tile.rows, ceil_div(rows, tile.rows))
    count = -(-rows // tile.rows)
    height = -(-rows // max(count, 1)) or 1
    whole = (rows - count * (height - 1)) * height
    return RowCut(replace(tile, rows=height), (height - 1,) if whole < rows else (), whole, count)


def whole_tiles(tile: Tile, rows: Dim) -> RowCut:
    """Tiles of just as many rows as the given one; the last one may have fewer."""
    return RowCut(tile, (), rows - rows % tile.rows, ceil_div(rows, tile.rows))


def tiles_per_task(cut: RowCut, depth: Dim, panels: Dim, size: int) -> int:
    """As many as half of the second level of the cache holds, if this gives enough tasks. ``size``: of a number."""
    room = caches().second // 2
    most = max(room // max(cut.tile.rows * depth * size, 1), 1) if isinstance(depth, int) else _TILES
    if isinstance(cut.count, int) and isinstance(panels, int):
        blocks = max(-(-cut.count // most), min(-(-ENOUGH_TASKS // max(panels, 1)), cut.count), 1)
        most = -(-cut.count // blocks)
    elif (tiles := _of_one(cut.count)) * (others := _of_one(panels)) >= ENOUGH_TASKS:
        most = min(most, tiles * others // ENOUGH_TASKS)
    return max(most, 1)


def _of_one(count: Dim) -> int:
    """How many there surely are where no size is 0, as in a batch of one."""
    return bounds(count, dict.fromkeys(symbols_of(count), (1, None)))[0] or 0


def piece_of(cut: RowCut, depth: Dim, panels: Dim, size: int) -> int | None:
    """How much of the inner axis is summed at once, where so all rows stay in the second level of the cache.

    ``None`` where it is not cut: where they stay there anyway, or serve one panel only. ``size``: of a number.
    """
    if not isinstance(depth, int) or depth < 2 * PIECE or cut.count == 1 or panels == 1:
        return None
    if isinstance(cut.count, int) and cut.count * cut.tile.rows * depth * size <= caches().second // 2:
        return None
    return -(-depth // (depth // PIECE))


def reads_in_place(height: int, row: Dim, step: Dim, size: int) -> bool:
    """Whether the left matrix can as well be read where it is: rows lie along the memory, and do not displace others.

    ``row``, ``step``: how far apart its rows are, and the numbers in them; ``size``: of a number.
    """
    return step == 1 and isinstance(row, int) and caches().keeps_lines(height, row * size)
