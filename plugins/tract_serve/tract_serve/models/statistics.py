"""What is counted of a model: how often, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import time


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

    ``batches``: how long runs took, by the number of requests in them, with what laying inputs together took.
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
    batches: dict[int, tuple[Duration, Duration, Duration]] = field(
        default_factory=dict[int, "tuple[Duration, Duration, Duration]"]
    )

    def run(self, requests: int, rows: int, seconds: tuple[float, float, float]) -> None:
        """A run is over: laying inputs together, the run, and taking outputs apart took so long."""
        self.runs += 1
        self.rows += rows
        self.last = int(time() * 1000)
        parts = self.batches.get(requests)
        if parts is None:
            parts = self.batches[requests] = (Duration(), Duration(), Duration())
        totals = (self.compute_input, self.compute_infer, self.compute_output)
        for one, total, took in zip(parts, totals, seconds, strict=True):
            one.add(took)
            total.add(took, requests)
