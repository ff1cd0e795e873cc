"""Turns to measure: warming up; their median and percentiles, and whether the median means much."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

PERCENTILES: Final = (5, 25, 75, 95, 99)

UNSTEADY: Final = 0.25
"""By which part of the median turns may differ: half of them from each other, or the later from the earlier ones."""

FEW: Final = 5
"""Turns below which nothing can be said of how much they differ."""

_BLAS_THREADS: Final = {
    "openblas": "OPENBLAS_NUM_THREADS",
    "mkl": "MKL_NUM_THREADS",
    "accelerate": "VECLIB_MAXIMUM_THREADS",
}
"""How each library that NumPy multiplies matrices with is told how many threads to take."""


def warm_up(state: Any, arrays: Any, milliseconds: float, loops: int) -> None:
    """Run for that many turns, and until that much time is over."""
    end = time.perf_counter() + milliseconds / 1e3
    for _ in range(loops):
        state.run(arrays)
    while time.perf_counter() < end:
        state.run(arrays)


def seconds_of_turns(state: Any, arrays: Any, limit: float, loops: int) -> list[float]:
    """Seconds of each turn, until the time or the number of loops is over; at least one."""
    seconds: list[float] = []
    end = time.perf_counter() + limit
    while len(seconds) < loops and (not seconds or time.perf_counter() < end):
        start = time.perf_counter()
        state.run(arrays)
        seconds.append(time.perf_counter() - start)
    return seconds


def figures_of(seconds: Sequence[float]) -> dict[str, Any]:
    """The figures of turns that took so long, in milliseconds. ``spread``: see `spread_of`."""
    taken = np.array(seconds) * 1e3
    return {
        "iterations": len(seconds),
        "median_ms": float(np.median(taken)),
        "fastest_ms": float(taken.min()),
        "slowest_ms": float(taken.max()),
        "mean_ms": float(taken.mean()),
        "percentiles_ms": {str(share): float(np.percentile(taken, share)) for share in PERCENTILES},
        "turns_per_s": 1e3 * len(seconds) / float(taken.sum()) if taken.sum() else None,
        "spread": spread_of(taken),
        "steady": len(seconds) >= FEW and spread_of(taken) <= UNSTEADY,
    }


def spread_of(taken: np.ndarray[Any, Any]) -> float:
    """By which part of the median turns differ, the larger of two figures.

    The distance of the quartiles, and how far the medians of the first and the second half of the turns are apart: the
    one sees turns of two kinds, the other a machine that slows down.
    """
    median = float(np.median(taken))
    if median == 0 or len(taken) < 2:
        return 0.0
    low, high = np.percentile(taken, (25, 75))
    halves = np.median(taken[: len(taken) // 2]) - np.median(taken[len(taken) // 2 :])
    return float(max(high - low, abs(halves))) / median


def doubt(figures: dict[str, Any], runtime: str) -> str | None:
    """Why the median says little, and what makes turns steadier; ``None`` when it can be relied on."""
    if figures["steady"]:
        return None
    if figures["iterations"] < FEW:
        return f"after so few turns ({figures['iterations']}) the median says little: --max-time gives more"
    low, high = figures["percentiles_ms"]["25"], figures["percentiles_ms"]["75"]
    problem = f"the turns differ by {figures['spread']:.0%} of the median, which says little"
    threads = blas_threads() if runtime == "reference" else None
    advice = f"{threads}=1 keeps NumPy's matrix products on one thread" if threads else "close what else runs"
    half = f"the middle half of them took between {low:.3f} and {high:.3f} ms"
    return f"{problem}: {half}\n  hint: {advice}; --max-time gives more turns"


def not_made_for_speed(runtime: str) -> str | None:
    """What to say of figures of the interpreter where nothing faster is installed; ``None`` elsewhere."""
    from tract_core.plugins import default_registry
    from tract_core.plugins.missing import how_to_get
    from tract_core.runtime.lookup import default_name

    if runtime != "reference" or default_name(default_registry().runtimes()) != runtime:
        return None
    problem = "'reference' is the plain NumPy interpreter, which is not made for speed; the runtime 'cpu' compiles"
    return f"{problem}\n  hint: {how_to_get('tract-cpu')}"


def blas_threads() -> str | None:
    """The variable that would keep NumPy's matrix products on one thread; ``None`` when they are."""
    name = _blas_name()
    variable = next((found for part, found in _BLAS_THREADS.items() if part in name), "OMP_NUM_THREADS")
    told = {os.environ.get(variable), os.environ.get("OMP_NUM_THREADS")}
    return None if "1" in told or (os.cpu_count() or 1) == 1 else variable


def _blas_name() -> str:
    described = np.show_config(mode="dicts")
    build = cast("dict[str, Any]", described or {}).get("Build Dependencies", {})
    return str(build.get("blas", {}).get("name", "")).lower()
