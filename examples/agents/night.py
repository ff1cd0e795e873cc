"""A night with lamps and moths: broods of moths, each with a brain in one runtime, which gets a share of each step."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np
from tract_inferers import (
    BrainId,
    DynamicInferer,
    EpsilonInjector,
    HighQualityNoiseGenerator,
    Inferer,
    RecurrentTracker,
    Responses,
    Runtime,
)
from world import ACTIONS, NEAR, PERIOD, SIZE, Array, Flags, Lamps, Moths

import tract_core as tract

FOLDER = Path(__file__).parent
LAMPS = 3
COMING, GOING = 4, 0.004
"""Moths of a brood that come in a step at the most, and the share that goes."""


def policy(name: str) -> DynamicInferer:
    """The policy in a file of this folder."""
    return DynamicInferer.from_model(tract.load(FOLDER / f"{name}.onnx"))


def brain(inferer: Inferer, *, forgetful: bool = False) -> RecurrentTracker:
    """A policy with noise, and with a memory for each moth; a forgetful one begins anew at every step."""
    noisy = EpsilonInjector.with_generator(inferer, HighQualityNoiseGenerator(seed=0), "epsilon")
    return RecurrentTracker.wrap(noisy, unbegun="initial" if forgetful else "refuse")


class Brood:
    """Moths with one brain, one per row. They go on as they last decided while the brain is not asked.

    ``most``: as many as there are to be. ``begins``: whether the brain is told of those that come. ``ids``: their
    numbers, ascending. ``ages``: in steps. ``lamps``: which one they follow. ``waits``: for the brain.
    """

    def __init__(self, name: str, inferer: Inferer, most: int, *, begins: bool = True) -> None:
        self.name, self.inferer, self.most, self.begins = name, inferer, most, begins
        self.moths = Moths((0,), np.random.default_rng())
        self.ids, self.ages, self.lamps = (np.zeros(0, np.int64) for _ in range(3))
        self.actions: Array = np.zeros((0, ACTIONS), np.float32)
        self.waits = False

    def keep(self, which: Flags) -> None:
        """Only these stay."""
        self.ids, self.ages, self.lamps = self.ids[which], self.ages[which], self.lamps[which]
        self.actions = self.actions[which]
        self.moths.place, self.moths.course = self.moths.place[which], self.moths.course[which]

    def add(self, ids: list[int], random: np.random.Generator) -> None:
        """These come, at the edge."""
        new = Moths((len(ids),), random)
        at_side = random.random((len(ids), 1)) < 0.5
        new.place = np.where(at_side == [True, False], np.sign(new.place) * SIZE, new.place)
        self.moths.place = np.concatenate([self.moths.place, new.place])
        self.moths.course = np.concatenate([self.moths.course, new.course])
        self.ids = np.concatenate([self.ids, np.array(ids, np.int64)])
        self.ages = np.concatenate([self.ages, np.zeros(len(ids), np.int64)])
        self.lamps = np.concatenate([self.lamps, random.integers(0, LAMPS, len(ids))])
        self.actions = np.concatenate([self.actions, np.zeros((len(ids), ACTIONS), np.float32)])

    def take(self, responses: Responses) -> None:
        """What the brain decided, for those that are still there."""
        self.actions[np.searchsorted(self.ids, responses.ids)] = responses.arrays["action"]
        self.waits = False

    def in_light(self, lamps: Lamps) -> float:
        """The share of moths in the light of their lamp, those aside that are too young to have seen it."""
        grown = self.ages >= PERIOD
        return float(((self.moths.distance(lamps.place[self.lamps]) < NEAR) & grown).sum() / max(grown.sum(), 1))


@dataclass(frozen=True)
class Step:
    """When the brains were asked, how long they took, in seconds, and who was told something, by brain."""

    start: float
    took: float
    decided: dict[BrainId, list[int]]


class Night:
    """Lamps, broods, and the runtime with their brains."""

    def __init__(self, broods: Iterable[Brood], seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.lamps = Lamps(LAMPS, self.random)
        self.runtime = Runtime()
        self.broods = {self.runtime.add_inferer(one.inferer): one for one in broods}
        self._numbers = count()

    def step(self, budget: float) -> Step:
        """A step of all, in which the brains get so many seconds."""
        for number, brood in self.broods.items():
            self._come_and_go(number, brood)
            if not brood.waits:
                lamps = self.lamps.place[brood.lamps], self.lamps.lit[brood.lamps]
                self.runtime.push_many(number, brood.ids, {"seen": brood.moths.observe(*lamps)})
                brood.waits = True
        start = time.perf_counter()
        decided = self.runtime.run_for(budget)
        step = Step(start, time.perf_counter() - start, {number: one.ids for number, one in decided.items()})
        for number, responses in decided.items():
            self.broods[number].take(responses)
        for brood in self.broods.values():
            brood.moths.step(brood.actions)
            brood.ages += 1
        self.lamps.step()
        return step

    def _come_and_go(self, number: BrainId, brood: Brood) -> None:
        stay = self.random.random(len(brood.ids)) >= GOING
        for moth in brood.ids[~stay].tolist():
            self.runtime.end_agent(number, moth)
        brood.keep(stay)
        new = list(islice(self._numbers, min(COMING, brood.most - len(brood.ids))))
        brood.add(new, self.random)
        for moth in new if brood.begins else ():
            self.runtime.begin_agent(number, moth)
