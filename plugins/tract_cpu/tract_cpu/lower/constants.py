"""The arrays that are part of a program: weights in the order in which kernels read them, and whatever else is known.

They are arranged in threads of their own, while the program is made, and only if a step reads them: most weights of a
file are read by nobody but those who pack them, and need no copy of their own. Nor need the file's pages stay in memory
once they were packed.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from tract_core.plugins.keys import Array
from tract_cpu.lower.program import Step, ViewStep, touched
from tract_cpu.lower.views import Kind
from tract_cpu.native.pool import threads_here

MOST_THREADS = 4
"""So many fill any memory bus."""


class Makers:
    """Threads that make arrays, as long as one program is made."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    def start(self, make: Callable[[Array], Array], source: Array) -> Future[Array]:
        """What a function makes of an array, when it is there."""

        def run() -> Array:
            made = make(source)
            let_go(source)
            return made

        if self._threads is None:
            self._threads = ThreadPoolExecutor(min(threads_here(), MOST_THREADS), "tract-cpu-constants")
        return self._threads.submit(run)

    def finished(self, constants: Sequence[Array | Future[Array]], steps: Sequence[Step]) -> tuple[Array, ...]:
        """All of the constants of a program. Those that its steps read have no gaps and are aligned."""
        found = list(constants)
        reading = (step for step in steps if not isinstance(step, ViewStep))
        for number in {one.number for step in reading for one in touched(step) if one.kind is Kind.CONSTANT}:
            one = found[number]
            if not isinstance(one, Future) and not (one.flags.c_contiguous and one.flags.aligned):
                found[number] = self.start(lambda array: np.require(array, requirements=["C", "A"]), one)
        arrays = tuple(one.result() if isinstance(one, Future) else one for one in found)
        if self._threads is not None:
            self._threads.shutdown()
        return arrays


def let_go(array: Array) -> None:
    """Tell the system that the elements of an array in a mapped file need not stay in memory, as there is a copy.

    They are read from the file again where somebody asks for them after all.
    """
    whole: Any = array
    while whole is not None and not isinstance(whole, mmap.mmap):
        whole = whole.obj if isinstance(whole, memoryview) else getattr(whole, "base", None)
    if whole is None or not hasattr(mmap, "MADV_DONTNEED") or not memoryview(whole).readonly:
        return
    begin = np.frombuffer(whole, np.uint8).__array_interface__["data"][0]
    first, last = (one - begin for one in np.lib.array_utils.byte_bounds(array))
    first, last = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE, last // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        whole.madvise(mmap.MADV_DONTNEED, first, last - first)
