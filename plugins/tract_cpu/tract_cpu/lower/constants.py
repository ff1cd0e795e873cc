"""The arrays that are part of a program: weights in the order in which kernels read them, and whatever else is known.

They are arranged in threads of their own, while the program is made, and only if a step reads them: most weights of a
file are read by nobody but those who pack them, and need no copy of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from tract_core.plugins.keys import Array
from tract_cpu.lower.program import HostStep, NativeStep, Step
from tract_cpu.lower.views import Address, Kind
from tract_cpu.native.pool import threads_here

MOST_THREADS = 4
"""So many fill any memory bus."""


class Makers:
    """Threads that make arrays, as long as one program is made."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    def start(self, make: Callable[[], Array]) -> Future[Array]:
        """What a function gives, when it is there."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(min(threads_here(), MOST_THREADS), "tract-cpu-constants")
        return self._threads.submit(make)

    def finished(self, constants: Sequence[Array | Future[Array]], steps: Sequence[Step]) -> tuple[Array, ...]:
        """All of the constants of a program. Those that its steps read have no gaps and are aligned."""
        found = list(constants)
        for number in {number for step in steps for number in _constants_of(step)}:
            one = found[number]
            if not isinstance(one, Future) and not (one.flags.c_contiguous and one.flags.aligned):
                found[number] = self.start(lambda array=one: np.require(array, requirements=["C", "A"]))
        arrays = tuple(one.result() if isinstance(one, Future) else one for one in found)
        if self._threads is not None:
            self._threads.shutdown()
        return arrays


def _constants_of(step: Step) -> Iterator[int]:
    """The numbers of the constants that a step reads."""
    if isinstance(step, NativeStep):
        storages = [one.storage for one in step.arguments if isinstance(one, Address)]
    else:
        storages = [one.storage for one in step.inputs if one is not None] if isinstance(step, HostStep) else []
    return (one.number for one in storages if one.kind is Kind.CONSTANT)
