"""How long policies take: one step, and batches of several sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any, Final

import numpy as np

from tract_core.frozen import frozen
from tract_inferers.batcher import Batched, Batcher
from tract_inferers.stateful import StatefulInferer

Array = np.ndarray[Any, Any]

WARM_UP: Final = 10
"""Batches of each size that are run before time is taken."""


@frozen
class Step:
    """What a step gave, by output, with the agents along axis 0, and how long it took. ``seconds``: that time."""

    outputs: dict[str, Array]
    seconds: float


@frozen
class Figure:
    """How long batches of one size took, in milliseconds.

    ``mean``, ``stddev``, ``median``, ``quartiles``: of the time of a batch, for one agent; the deviation is that of
    the population. ``total``: of all the ``batches``. ``batch_size``: how many agents are in one.
    """

    batch_size: int
    batches: int
    mean: float
    stddev: float
    median: float
    quartiles: tuple[float, float]
    total: float

    @staticmethod
    def of(batch_size: int, seconds: list[float]) -> Figure:
        """The figures of batches that took so long."""
        taken = np.array(seconds) * 1e3
        each = taken / batch_size
        low, median, high = (float(value) for value in np.percentile(each, (25, 50, 75)))
        mean, stddev = float(each.mean()), float(each.std())
        return Figure(batch_size, len(seconds), mean, stddev, median, (low, high), float(taken.sum()))


def first_step(policy: StatefulInferer, observations: Mapping[str, Array]) -> Step:
    """The first step of agents that have just begun: run twice, the second time is what counts."""
    agents = list(range(_count(observations)))
    for agent in agents:
        policy.begin_agent(agent)
    undo = policy.remember(agents)
    policy.infer_many(agents, observations)
    undo()
    start = perf_counter()
    responses = policy.infer_many(agents, observations)
    return Step(responses.arrays, perf_counter() - start)


def figure_of(policy: StatefulInferer, observations: Mapping[str, Array], batches: int) -> Figure:
    """How long batches take in which every agent observes something; they all begin before, and go on in between."""
    size = _count(observations)
    for agent in range(size):
        policy.begin_agent(agent)
    batched = Batched(policy, Batcher(policy, size))
    pushed = dict(enumerate(_each(observations, size)))
    seconds: list[float] = []
    for _ in range(WARM_UP + batches):
        start = perf_counter()
        batched.extend(pushed)
        batched.execute()
        seconds.append(perf_counter() - start)
    return Figure.of(size, seconds[WARM_UP:])


def _each(observations: Mapping[str, Array], size: int) -> Iterator[dict[str, Array]]:
    return ({name: array[row, ...] for name, array in observations.items()} for row in range(size))


def _count(observations: Mapping[str, Array]) -> int:
    return len(next(iter(observations.values())))
