"""The arrays that are part of a program: weights in the order in which kernels read them, and whatever else is known.

They are arranged in threads of their own, while the program is made, and only if a step reads them: most weights of a
file are read by nobody but those who pack them, and need no copy of their own. Nor need the file's pages stay in memory
once they were packed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np
from tract_llvm.program.storages import Kind

from tract_core.data.stored import let_go
from tract_core.errors import LimitExceeded
from tract_core.limits import current_budget
from tract_core.plugins.keys import Array
from tract_cpu.native.pool import threads_here
from tract_cpu.program.program import Step, ViewStep, touched

MOST_THREADS = 4
"""So many fill any memory bus."""


SMALL: Final = 1 << 18
"""Bytes of an array for which nobody else is asked: to begin with threads takes as long."""


def without_repeats(array: Array) -> Array:
    """The array with a single position along every axis that repeats one; the very same where none does."""
    repeats = [stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True)]
    if not any(repeats):
        return array
    found: Array = array[tuple(slice(0, 1) if one else slice(None) for one in repeats)]
    return found


MUCH: Final = 4
"""How many times as large as what it is made of a constant may be without counting as made, as f32 that were bytes."""


def take_bytes(made: int, source: Array) -> None:
    """An array of so many bytes is made of one of the model.

    Raises LimitExceeded where that is much more, and the limits do not allow it.
    """
    budget, before = current_budget(), without_repeats(source).nbytes
    if budget is None or budget.take_bytes(made, min(made, MUCH * before)):
        return
    allowed = budget.limits.max_fold_bytes
    raise LimitExceeded(
        f"a constant of {made} bytes would be made of {before}, and {allowed} are allowed for all of them",
        hint="a model that needs so much can be loaded with LoadLimits(max_fold_bytes=...)",
    )


class Makers:
    """Threads that make arrays, as long as one program is made."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    def start(self, make: Callable[[Array], Array], source: Array) -> Array | Future[Array]:
        """What a function makes of an array, when it is there; small ones are made at once."""

        def run() -> Array:
            made = make(source)
            let_go(source)
            return made

        if source.nbytes < SMALL:
            return run()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(min(threads_here(), MOST_THREADS), "tract-cpu-constants")
        return self._threads.submit(run)

    def finished(self, constants: Sequence[Array | Future[Array]], steps: Sequence[Step]) -> tuple[Array, ...]:
        """All of the constants of a program. Those that its steps read have no gaps and are aligned."""
        found = list(constants)
        reading = (step for step in steps if not isinstance(step, ViewStep))
        for number in {one.number for step in reading for one in touched(step) if one.kind is Kind.CONSTANT}:
            one = found[number]
            if isinstance(one, np.ndarray) and not (one.flags.c_contiguous and one.flags.aligned):
                take_bytes(one.nbytes, one)
                found[number] = self.start(lambda array: np.require(array, requirements=["C", "A"]), one)
        arrays = tuple(one if isinstance(one, np.ndarray) else one.result() for one in found)
        if self._threads is not None:
            self._threads.shutdown()
        return arrays
