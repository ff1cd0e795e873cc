"""What is counted of a model: how often, and for how long."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from time import time
from typing import Final

BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds up to which the buckets of a histogram go; there is one more above."""


@dataclass(slots=True)
class Duration:
    """``count`` times, ``ns`` nanoseconds in all."""

    count: int = 0
    ns: int = 0

    def add(self, seconds: float, count: int = 1) -> None:
        """So many more."""
        self.count += count
        self.ns += int(seconds * 1e9)


@dataclass(slots=True)
class Statistics:
    """Of one version of a model. ``rows``: inferences, each row for itself; ``runs``: of the model.

    ``latencies``: how many requests were answered within each of `BOUNDS`, and later. ``batches``: how long runs took,
    by the number of rows in them, with what laying inputs together and taking outputs apart took.
    """

    success: Duration = field(default_factory=Duration)
    fail: Duration = field(default_factory=Duration)
    cancelled: int = 0
    refused: int = 0
    queue: Duration = field(default_factory=Duration)
    compute_input: Duration = field(default_factory=Duration)
    compute_infer: Duration = field(default_factory=Duration)
    compute_output: Duration = field(default_factory=Duration)
    rows: int = 0
    runs: int = 0
    last: int = 0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    batches: dict[int, tuple[Duration, Duration, Duration]] = field(
        default_factory=dict[int, "tuple[Duration, Duration, Duration]"]
    )

    def answered(self, seconds: float) -> None:
        """A request was answered after so many seconds."""
        self.success.add(seconds)
        self.latencies[bisect_left(BOUNDS, seconds)] += 1

    def run(self, requests: int, rows: int, seconds: tuple[float, float, float]) -> None:
        """A run is over: laying inputs together, the run, and taking outputs apart took so long."""
        self.runs += 1
        self.rows += rows
        self.last = int(time() * 1000)
        parts = self.batches.get(rows)
        if parts is None:
            parts = self.batches[rows] = (Duration(), Duration(), Duration())
        totals = (self.compute_input, self.compute_infer, self.compute_output)
        for one, total, took in zip(parts, totals, seconds, strict=True):
            one.add(took)
            total.add(took, requests)
