"""One thread and two, on the CPU runtime: ``python bench/bench_threads.py [--busy N] [WORD ...]``

Prints, for each workload with one of the words in its name, the median time of a call on one thread and on two, in
milliseconds, and the first divided by the second: no less than 1 is wanted, on a machine that does nothing else, and
with ``--busy N``, beside N processes that compute all the time. Both are called in turn, in short rounds, and the
ratio is the median of those of the rounds.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Process
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from workloads import WORKLOADS

import tract_core as tract

MODELS = Path(__file__).resolve().parent / ".models"
ROUNDS = 11
SECONDS = 0.05
"""How long one round of one of them takes."""


def round_of(call: Callable[[], Any]) -> float:
    """The median time of a call, over one round."""
    times, end = list[float](), perf_counter() + SECONDS
    while not times or perf_counter() < end:
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return statistics.median(times)


def compute() -> None:
    """What the others do."""
    while True:
        pass


@contextmanager
def beside(count: int) -> Iterator[None]:
    """So many processes compute meanwhile."""
    others = [Process(target=compute, daemon=True) for _ in range(count)]
    for one in others:
        one.start()
    yield
    for one in others:
        one.kill()


def measure(name: str, model: Path, data: Path) -> None:
    """Print the line of a workload."""
    arrays = np.load(data)
    inputs = {key.removeprefix("input "): arrays[key] for key in arrays.files if key.startswith("input ")}
    runnables = [tract.runtime_for_name("cpu", threads=count).prepare(tract.load(model)) for count in (1, 2)]
    one, two = (lambda runnable=runnable: runnable.run(inputs) for runnable in runnables)
    for a, b in zip(one(), two(), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    rounds = [(round_of(one), round_of(two)) for _ in range(ROUNDS)]
    medians = [statistics.median(times) * 1e3 for times in zip(*rounds, strict=True)]
    ratio = statistics.median(alone / shared for alone, shared in rounds)
    print(f"{name:20}{medians[0]:10.3f}{medians[1]:10.3f}{ratio:8.2f}", flush=True)


def main() -> None:
    words = sys.argv[1:]
    busy = int(words[1]) if words[:1] == ["--busy"] else 0
    words = words[2 * (words[:1] == ["--busy"]) :]
    print(f"{'':20}{'1 thread':>10}{'2':>10}{'ratio':>8}")
    with beside(busy):
        for workload in WORKLOADS:
            if not words or any(word.lower() in workload.name.lower() for word in words):
                measure(workload.name, *workload.files(MODELS, small=False))


if __name__ == "__main__":
    main()
