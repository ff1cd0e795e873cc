"""Where threads, blocks and launches keep what they know: records of numbers of 64 bits, for Python and native code."""

from __future__ import annotations

from typing import Final

from tract_core.frozen import frozen

WORD: Final = 8


@frozen
class Layout:
    """A record. ``names``: its fields, in order; ``extra``: bytes behind them."""

    names: tuple[str, ...]
    extra: int = 0

    @property
    def bytes(self) -> int:
        """Of a whole record: whole lines of the cache."""
        return -(-(WORD * len(self.names) + self.extra) // 64) * 64

    def offset(self, name: str) -> int:
        """Bytes from the beginning of the record to a field, or to what stands behind all fields: ``"extra"``."""
        return WORD * (len(self.names) if name == "extra" else self.names.index(name))


AXES: Final = "xyz"
SLOTS: Final = 256
"""Operands and results of what a warp does together, of 32 bits each."""

THREAD: Final = Layout(
    (
        *(f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in AXES),
        *("lane", "warp", "index", "launch", "block", "shared", "parameters"),
        *("wait", "line", "function", "mask", "number", "count", "fuel", "frame"),
        *("local", "local_bytes", "copies", "copy_count", "groups", "address", "second", "flags"),
    ),
    4 * SLOTS,
)
"""A thread. ``wait``: what it waits for; ``line``: where. ``number``, ``count``: of a barrier.

``function``, ``mask``: what the lanes of a warp do together, once they are all there. ``fuel``: jumps back before
others get their turn. ``copies``: those that have not arrived; ``groups``: how many groups were committed.
"""

BLOCK: Final = Layout(
    (
        *("launch", "threads", "thread_bytes", "thread_count", "shared", "shadow", "epoch", "base", "warps", "lanes"),
        *("barriers", "joins", "over", "number", "progress"),
    )
)
"""A block. ``epoch``: one more after every barrier of all threads; ``base``: what it was at the beginning.

``shadow``: of each byte of shared memory, who wrote it last and who read it last. ``warps``: the clock of each warp,
and what it knows of those of others; ``lanes``: what each thread knows of the threads of its warp.
"""

BARRIERS: Final = 16
BARRIER: Final = Layout(("arrived", "expected", "known"), 32 * WORD)
"""A barrier of a block. ``known``: whether the clocks of the warps that arrived are behind all fields."""

COPY: Final = Layout(("target", "source", "bytes", "have", "group", "barrier"))
"""A copy that has not arrived. ``have``: bytes that it copies; the others become zeros.

``barrier``: the address of the barrier that misses less when it arrives; 0 for a copy of a group.
"""
MOST_COPIES: Final = 512

SHADOW: Final = Layout(("writer", "reader", "other"))
"""Of one byte: records of who wrote it last, and of two who read it since.

It is 24 bytes, not a whole line: see `SHADOW_BYTES`.
"""
SHADOW_BYTES: Final = 3 * WORD

RANGE: Final = Layout(("begin", "end", "shadow", "writable", "touched"))
RANGE_BYTES: Final = 5 * WORD
"""``shadow``: of each byte, whether it was written; ``touched``: who touched it last; 0 where that is not watched."""

TOUCHED: Final = Layout(("writer", "reader", "other", "writer_block", "reader_block"))
"""Of one byte of global memory: who wrote it last, and two who read it since; blocks by their numbers and one more."""
TOUCHED_BYTES: Final = 5 * WORD

LAUNCH: Final = Layout(
    (
        *("error", "line", "thread", "address", "bytes", "first", "second", "ranges", "range_count", "last_range"),
        *("shared_bytes", "order", "random", "resident", "blocks", "next", "total", "seed", "strict"),
        *("entry", "idle", "who", "picks"),
        *(f"grid.{axis}" for axis in AXES),
    )
)
"""A launch, and what went wrong first. ``first``, ``second``: what the message says besides."""

DONE, READY, TURN, AT_BARRIER, TOGETHER, GROUP = range(6)
"""What a thread waits for: it is over, nothing, others' turn, a barrier, its warp, its group of four warps."""

SHARED_BASE: Final = 1024
"""The address at which the shared memory of a block begins: 0 is in none."""

PROBLEMS: Final = (
    "",
    "outside",
    "misaligned",
    "read_only",
    "unwritten_global",
    "race_of_blocks",
    "race_global",
    "outside_shared",
    "misaligned_shared",
    "unwritten_shared",
    "race_writes",
    "race_write_after_read",
    "race_read_after_write",
    "barrier_counts",
    "barrier_lines",
    "stuck",
    "endless",
    "mask",
    "local",
    "copies",
    "copied",
    "trap",
    "pending",
    "arrivals",
    "made",
)
"""What can go wrong; `report.MESSAGES` says it in words."""
