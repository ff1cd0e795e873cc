"""Train the policies of this example by an evolution strategy, and export them as ONNX files.

Needs NumPy and ``onnx``. Takes a few minutes on one core; the same seed gives the same files on the same machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from policy import decide, export, grown, initial, size, split
from world import ACTIONS, NEAR, PERIOD, Array, Lamps, Moths

FOLDER = Path(__file__).parent
STEPS, EPISODES = 160, 16
"""Of a trial in training: steps, and moths with a lamp each."""
PAIRS = 64
"""Pairs of policies that are tried in a generation, each the mirror image of the other."""


@dataclass(frozen=True)
class Course:
    """How a policy is trained. ``generations``: of the strategy, by the name of the file that is written then.

    ``spread``: of the weights that are tried around those found so far. ``rate``: how far a generation goes at first.
    """

    hidden: int
    generations: dict[int, str]
    spread: float
    rate: float


COURSES = (
    Course(24, {20: "early", 700: "trained"}, spread=0.05, rate=0.03),
    Course(48, {400: "owls"}, spread=0.04, rate=0.02),
)


def trial(
    weights: Array, course: Course, seed: int, *, moths: int = EPISODES, steps: int = STEPS, forget: bool = False
) -> tuple[Array, Array]:
    """How policies do on their way: their mean distance from the lamp, and the share of time in its light, (policies,).

    ``weights``: (policies, size), all of which meet the same lamps and the same noise. The first flash does not count,
    as nobody knows of the lamp before. ``forget``: whether the memory is emptied at every step.
    """
    random, by_name, policies = np.random.default_rng(seed), split(weights, course.hidden), len(weights)
    lamps, flock = Lamps(moths, random), Moths((moths,), random)
    flock.place, flock.course = (np.repeat(one[None], policies, axis=0) for one in (flock.place, flock.course))
    memory = np.zeros((policies, moths, course.hidden), np.float32)
    distance, light = np.zeros(policies, np.float32), np.zeros(policies, np.float32)
    for step in range(steps):
        noise = random.standard_normal((moths, ACTIONS), np.float32)
        actions, kept = decide(by_name, flock.observe(lamps.place, lamps.lit), memory, noise)
        memory = memory if forget else kept
        flock.step(actions)
        lamps.step()
        if step >= PERIOD:
            found = flock.distance(lamps.place)
            distance += np.minimum(found, 1.5).mean(-1)
            light += (found < NEAR).mean(-1)
    counted = np.float32(steps - PERIOD)
    return distance / counted, light / counted


def train(course: Course, mean: Array, random: np.random.Generator) -> Array:
    """Better weights than ``mean``: (size,).

    The evolution strategy of Salimans et al. (2017): antithetic pairs, ranks in place of scores, steps of Adam.
    """
    slope, square = np.zeros_like(mean), np.zeros_like(mean)
    last, start = max(course.generations), time.perf_counter()
    for generation in range(1, last + 1):
        tried = random.standard_normal((PAIRS, size(course.hidden)), np.float32) * np.float32(course.spread)
        distance, _ = trial(np.concatenate([mean + tried, mean - tried]), course, seed=generation)
        ranks = np.empty(2 * PAIRS, np.float32)
        ranks[np.argsort(-distance)] = np.linspace(-0.5, 0.5, 2 * PAIRS)
        uphill = (ranks[:PAIRS] - ranks[PAIRS:]) @ tried / (PAIRS * course.spread**2)
        slope, square = 0.9 * slope + 0.1 * uphill, 0.99 * square + 0.01 * uphill**2
        steepness = np.sqrt(square / (1 - 0.99**generation)) + 1e-8
        rate = course.rate * (1 - 0.9 * generation / last)
        mean = (mean + rate * slope / (1 - 0.9**generation) / steepness).astype(np.float32)
        if generation in course.generations:
            finish(mean, course, course.generations[generation], time.perf_counter() - start)
    return mean


def finish(weights: Array, course: Course, name: str, seconds: float) -> None:
    """Write a policy, and say how it does on lamps that it has never met."""
    path = FOLDER / f"{name}.onnx"
    export(split(weights, course.hidden), path)
    score, forgetful = (
        float(trial(weights[None], course, seed=0, moths=1000, steps=PERIOD * 21, forget=forget)[1][0])
        for forget in (False, True)
    )
    print(f"wrote {path.name} after {seconds:.0f} s, {path.stat().st_size / 1024:.1f} KiB: moths are", end=" ")
    print(f"in the light of their lamp {score:.1%} of the time, {forgetful:.1%} without memory", flush=True)


def main() -> None:
    random = np.random.default_rng(0)
    moths, owls = COURSES
    found = train(moths, initial(moths.hidden, random), random)
    train(owls, grown(found, moths.hidden, owls.hidden, random), random)


if __name__ == "__main__":
    main()
