"""Tasks by their positions along several loops, which are counted on: divisions take longer than some tasks."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tract_llvm.language.values import Value

from tract_cpu.kernels.kernel import Kernel


@contextmanager
def each_task(k: Kernel, sizes: Sequence[Value]) -> Generator[list[Value]]:
    """Go through the tasks of a call. Gives where each is along the loops, the outermost first.

    ``sizes``: of all loops but the outermost one, which has as many rounds as there are tasks for.
    """
    positions = [k.variable(k.index(0)) for _ in range(len(sizes) + 1)]
    with k.when(k.begin < k.end):  # else sizes may be 0
        rest = k.begin
        for position, size in zip(reversed(positions), reversed(sizes), strict=False):
            position.value, rest = rest % size, rest // size
        positions[0].value = rest
    with k.loop("task", k.end, k.begin):
        yield [one.value for one in positions]
        carried = k.index(1)
        for position, size in zip(reversed(positions), reversed(sizes), strict=False):
            following = position.value + carried
            over = following >= size
            position.value = k.select(over, k.index(0), following)
            carried = k.select(over, k.index(1), k.index(0))
        positions[0].value = positions[0].value + carried
