"""One launch: the memory that threads, blocks and their checks need, and what comes out."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tract_core.frozen import frozen
from tract_cuda.testing.emulator.machine.build import machine
from tract_cuda.testing.emulator.machine.layout import (
    AXES,
    BARRIER,
    BARRIERS,
    BLOCK,
    COPY,
    LAUNCH,
    MOST_COPIES,
    PROBLEMS,
    RANGE_BYTES,
    SHADOW_BYTES,
    THREAD,
    TOUCHED_BYTES,
    WORD,
    Layout,
)
from tract_cuda.testing.emulator.machine.mbarriers import JOIN_BYTES
from tract_cuda.testing.emulator.report import Found

WARP: Final = 32
_THREADS_AT_ONCE: Final = 8192
"""So many threads, about, are on the device at once, unless a launch says how many blocks."""

Numbers = NDArray[np.int64]
Grid = tuple[int, int, int]


@frozen
class Range:
    """Memory that a kernel may use. ``writable``: whether it may write.

    ``written``: an array of one byte for each of it, not 0 where it was written; reading others is an error, and
    writes set it. ``None``: all of it may be read. ``raced``: whether it is an error where threads touch a byte of it,
    one of them writes, and no barrier is between; so is it for blocks, which may not wait for each other then.
    ``begin``: its address; ``bytes``: how long it is.
    """

    begin: int
    bytes: int
    writable: bool = True
    written: NDArray[np.uint8] | None = None
    raced: bool = False


@frozen
class Job:
    """A launch. ``entry``: the address of the code; ``shared``: all bytes of shared memory; ``local``: of a thread's.

    ``order``: 0 for threads and blocks from the first to the last, 1 from the last to the first, others are seeds of
    random orders. ``resident``: blocks that are there at once; 0 for some. ``strict``: whether shared memory is
    watched.
    ``parameters``: as they lie in memory.
    """

    entry: int
    grid: Grid
    block: Grid
    shared: int
    local: int
    parameters: bytes
    ranges: Sequence[Range]
    order: int
    seed: int
    resident: int
    strict: bool


class Records:
    """Records of one layout, one behind the other."""

    def __init__(self, layout: Layout, count: int) -> None:
        self.layout = layout
        self.data: Numbers = np.zeros((count, layout.bytes // WORD), np.int64)

    def __setitem__(self, name: str, value: Any) -> None:
        self.data[:, self.layout.offset(name) // WORD] = value

    def __getitem__(self, name: str) -> Numbers:
        return self.data[:, self.layout.offset(name) // WORD]

    @property
    def address(self) -> int:
        """Of the first one."""
        return self.data.ctypes.data

    def addresses(self) -> Numbers:
        """Of all."""
        return self.address + np.arange(len(self.data)) * self.layout.bytes


class EmulatedLaunch:
    """The memory of a launch, and its run."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._count = int(np.prod(job.block))
        self._total = int(np.prod(job.grid))
        resident = job.resident or max(1, _THREADS_AT_ONCE // self._count)
        self._resident = min(resident, self._total)
        self._kept: list[Any] = []
        self._launch = Records(LAUNCH, 1)
        self._blocks = Records(BLOCK, self._resident)
        self._threads = Records(THREAD, self._resident * self._count)
        self._fill_launch()
        self._fill_blocks()
        self._fill_threads()

    def run(self) -> Found | None:
        """What went wrong, if something did."""
        ctypes.CFUNCTYPE(None, ctypes.c_int64)(machine().addresses["run_launch"])(self._launch.address)
        held = self._launch
        what = PROBLEMS[int(held["error"][0])]
        if not what:
            return None
        number = (int(held["thread"][0]) - self._threads.address) // THREAD.bytes
        return Found(
            what,
            int(held["line"][0]),
            self._spot("ctaid", number),
            self._spot("tid", number),
            *(int(held[name][0]) for name in ("address", "bytes", "first", "second")),
        )

    def _spot(self, name: str, number: int) -> Grid:
        x, y, z = (int(self._threads[f"{name}.{axis}"][number]) for axis in AXES)
        return x, y, z

    def _zeros(self, count: int) -> int:
        """The address of so many bytes, zeros, at a multiple of 1024."""
        held = np.zeros(count + 1024, np.uint8)
        self._kept.append(held)
        return -(-held.ctypes.data // 1024) * 1024

    def _fill_launch(self) -> None:
        job, launch = self._job, self._launch
        ranges = np.zeros((max(len(job.ranges), 1), RANGE_BYTES // WORD), np.int64)
        for row, one in zip(ranges, job.ranges, strict=False):
            row[:] = (
                one.begin,
                one.begin + one.bytes,
                0 if one.written is None else one.written.ctypes.data,
                one.writable,
                self._zeros(one.bytes * TOUCHED_BYTES) if one.raced else 0,
            )
        who, picks = _order(self._count, job.order), _order(self._total, job.order)
        self._kept += [ranges, who, picks]
        launch["ranges"], launch["range_count"] = ranges.ctypes.data, len(job.ranges)
        launch["last_range"] = ranges.ctypes.data
        launch["who"], launch["picks"] = who.ctypes.data, picks.ctypes.data
        launch["shared_bytes"], launch["order"], launch["random"] = job.shared, job.order, job.order * 0x9E3779B9 + 1
        launch["resident"], launch["total"], launch["seed"] = self._resident, self._total, job.seed
        launch["blocks"], launch["entry"], launch["strict"] = self._blocks.address, job.entry, job.strict
        for axis, size in zip(AXES, job.grid, strict=True):
            launch[f"grid.{axis}"] = size

    def _fill_blocks(self) -> None:
        blocks, count, resident = self._blocks, self._count, self._resident
        shared = -(-max(self._job.shared, 1) // 1024) * 1024
        each = {
            "shared": shared,
            "shadow": shared * SHADOW_BYTES,
            "warps": WARP * (WARP + 1) * WORD,
            "lanes": -(-count // WARP) * WARP * WARP * WORD,
            "barriers": BARRIERS * BARRIER.bytes,
            "joins": shared * JOIN_BYTES,
        }
        for name, size in each.items():
            blocks[name] = self._zeros(size * resident) + np.arange(resident) * size
        blocks["launch"], blocks["thread_bytes"], blocks["thread_count"] = self._launch.address, THREAD.bytes, count
        blocks["threads"] = self._threads.address + np.arange(resident) * count * THREAD.bytes
        blocks["over"] = 1

    def _fill_threads(self) -> None:
        threads, job, count = self._threads, self._job, self._count
        index = np.tile(np.arange(count), self._resident)
        x, y, _ = job.block
        for axis, value in zip(AXES, (index % x, index // x % y, index // (x * y)), strict=True):
            threads[f"tid.{axis}"] = value
        for name, sizes in (("ntid", job.block), ("nctaid", job.grid)):
            for axis, size in zip(AXES, sizes, strict=True):
                threads[f"{name}.{axis}"] = size
        threads["index"], threads["lane"], threads["warp"] = index, index % WARP, index // WARP
        parameters = np.frombuffer(job.parameters.ljust(WORD, b"\0"), np.uint8)
        self._kept.append(parameters)
        threads["parameters"], threads["launch"] = parameters.ctypes.data, self._launch.address
        threads["shared"] = np.repeat(self._blocks["shared"], count)
        threads["block"] = np.repeat(self._blocks.addresses(), count)
        local = -(-job.local // 64) * 64
        everyone = np.arange(len(index))
        threads["local"], threads["local_bytes"] = self._zeros(local * len(index)) + everyone * local, job.local
        copies = MOST_COPIES * COPY.bytes
        threads["copies"] = self._zeros(copies * len(index)) + everyone * copies


def _order(count: int, order: int) -> Numbers:
    if order > 1:
        return np.random.default_rng(order).permutation(count).astype(np.int64)
    found = np.arange(count, dtype=np.int64)
    return found if order == 0 else np.ascontiguousarray(found[::-1])


def packed(value: bytes | int | float, size: int) -> bytes:
    """A parameter as the bytes that a kernel takes."""
    if isinstance(value, bytes):
        return value.ljust(size, b"\0")
    if isinstance(value, float):
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], value)
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
