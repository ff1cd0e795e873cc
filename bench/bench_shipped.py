"""Trained files that packages ship, beside ONNX Runtime: ``python bench/bench_shipped.py [--only WORD]``

The files and their inputs are those of ``make test-shipped``, which fetches them. Both engines are loaded in this
process, with as many threads, and take turns, so that what else the machine does hits both alike. For each case: the
medians of both, the median of the ratios (ONNX Runtime's time over ours: above 1 we are faster), the largest difference
relative to the largest number of the output, and the operators that are left to the host. The last line is the
geometric mean over the files.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "shipped"), str(ROOT / "plugins" / "tract_onnx" / "tests")]

import fetch  # noqa: E402 - found by the path above
from shipped_inputs import Case, session, two_cases  # noqa: E402
from shipped_nodes import distance  # noqa: E402
from stopwatch import wait_until_idle  # noqa: E402

import tract_core as tract  # noqa: E402

Run = Callable[[], object]


class Figures(NamedTuple):
    """Medians in milliseconds, their ratio, and the largest difference of the results."""

    ours: float
    theirs: float
    ratio: float
    difference: float


def measured(runs: tuple[Run, Run], seconds: float) -> tuple[float, float, float]:
    """Medians of both in milliseconds, and of the second one's time over the first one's, round by round."""
    times: list[list[float]] = []
    counts = [max(1, int(seconds / 20 / max(_mean(run, 1), 1e-6))) for run in runs]
    begin = perf_counter()
    while len(times) < 3 or (perf_counter() - begin < seconds and len(times) < 15):
        times.append([1e3 * _mean(run, count) for run, count in zip(runs, counts, strict=True)])
    ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    return ours, theirs, statistics.median(second / first for first, second in times)


def _mean(run: Run, count: int) -> float:
    """Mean seconds of so many runs, after one that does not count: the other engine has put things out of caches."""
    wait_until_idle()
    run()
    begin = perf_counter()
    for _ in range(count):
        run()
    return (perf_counter() - begin) / count


def compare(runnable: tract.Runnable, path: Path, case: Case, threads: int, seconds: float) -> Figures:
    engine = session(str(path), threads)
    given = [case.given[runnable.input_name(slot)] for slot in range(runnable.input_count())]

    def ours() -> object:
        return [tensor.to_numpy() for tensor in runnable.run(given)]

    found = [tensor.to_numpy() for tensor in runnable.run(given)]
    difference = max(map(distance, found, case.wanted))
    engine.run(None, case.given)
    return Figures(*measured((ours, lambda: engine.run(None, case.given)), seconds), difference)


def hosted(runnable: tract.Runnable) -> str:
    """The operators without native code, and how many of each."""
    places = runnable.explain().placements
    names = Counter(name for one in places if one.how in ("numpy", "state") for name in one.ops)
    return ", ".join(f"{name} {count}" for name, count in names.most_common())


def examine(path: Path, threads: int, seconds: float) -> float:
    """Print a line for each case, and give the geometric mean of their ratios."""
    model = tract.onnx().load(path).into_model()
    runnable = tract.runtime_for_name("cpu", threads=threads).prepare(model)
    ratios: list[float] = []
    for case in two_cases(path, fetch.known(path)):
        found = compare(runnable, path, case, threads, seconds)
        ratios.append(found.ratio)
        sizes = " ".join(f"{name[-12:]}={size}" for name, size in case.sizes.items())[:44]
        print(
            f"{fetch.short_name(path):52} {sizes:44} {found.ours:9.3f} {found.theirs:9.3f} {found.ratio:6.2f} "
            f"{found.difference:8.0e}  {hosted(runnable)}",
            flush=True,
        )
    return statistics.geometric_mean(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="files with this in their names")
    parser.add_argument("--models", nargs="+", type=Path, help="ONNX files, or folders of them, to run instead")
    parser.add_argument("--threads", type=int, default=1, help="of both engines")
    parser.add_argument("--seconds", type=float, default=1.5, help="for each case")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # files are run as they are
    print(f"{'file':52} {'sizes':44} {'ours ms':>9} {'ORT ms':>9} {'ratio':>6} {'differ':>8}  left to the host")
    ratios: dict[str, float] = {}
    for path in fetch.models(options.models):
        name = fetch.short_name(path)
        if options.only not in name:
            continue
        try:
            ratios[name] = examine(path, options.threads, options.seconds)
        except (tract.TractError, AssertionError) as error:
            print(f"{name:52} {str(error).splitlines()[0]}", flush=True)
    if ratios:
        slowest = min(ratios, key=ratios.__getitem__)
        mean = statistics.geometric_mean(ratios.values())
        print(f"geometric mean of {len(ratios)} files: {mean:.2f}; the least: {ratios[slowest]:.2f}, {slowest}")


if __name__ == "__main__":
    main()
