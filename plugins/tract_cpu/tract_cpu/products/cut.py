"""How the rows of a product are cut into tiles, and these into tasks: by sizes and caches."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise, product
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


_FEW: Final = 128
"""With more tiles than that, it is of little weight whether a thread has one more."""

_FURTHER: Final = 3
"""How many tiles more there may be."""

_HARDLY: Final = 1.02
"""How much longer one thread may take with them."""

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
    return _cut_into(tile, rows, -(-rows // tile.rows))


def _cut_into(tile: Tile, rows: int, count: int) -> RowCut:
    """So many tiles, all about as high."""
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


def shared_evenly(cut: RowCut, rows: Dim, panels: Dim, tiles: int) -> tuple[RowCut, int]:
    """The cut, or one into a few tiles more, and how many tiles a task has: no more than it is said here.

    Two and four threads are to have as little to do as can be, and one thread hardly more than before.
    """
    if not isinstance(rows, int) or not isinstance(panels, int) or not isinstance(cut.count, int):
        return cut, tiles
    if not 1 < cut.count <= _FEW or not panels:
        return cut, tiles
    count, each = _evenest(cut.tile.vectors, rows, panels, cut.count, min(tiles, cut.count))
    return cut if count == cut.count else _cut_into(cut.tile, rows, count), each


@cache
def _evenest(vectors: int, rows: int, panels: int, count: int, each: int) -> tuple[int, int]:
    """How many tiles, and how many of them for a task."""
    most = _work(vectors, rows, panels, (count, each), 1) * _HARDLY
    cuts = product(range(count, min(count + _FURTHER, rows) + 1), range(each, each // 2, -1))
    few = [one for one in cuts if _work(vectors, rows, panels, one, 1) <= most]
    return min(few, key=lambda one: sum(threads * _work(vectors, rows, panels, one, threads) for threads in (1, 2, 4)))


def _work(vectors: int, rows: int, panels: int, cut: tuple[int, int], threads: int) -> float:
    """What the busiest of some threads does for a step along the inner axis, in multiply-adds of vectors.

    ``cut``: how many tiles, and for a task. A tile costs its loop and the loads of its vectors besides, and a task once
    more what it takes to bring these near.
    """
    count, each = cut
    tasks, tile = -(-count // each) * panels, rows / count * vectors + vectors + 1

    def before(task: int) -> float:
        block, panel = divmod(task, panels)
        done = min(block * each, count)
        return (done * panels + min(each, count - done) * panel) * tile + task * vectors

    ends = [before(tasks * part // threads) for part in range(threads + 1)]
    return max(end - begin for begin, end in pairwise(ends))


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
