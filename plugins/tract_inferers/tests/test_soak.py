"""Everything at once from four threads, for as long as it is told: nothing is lost, given twice, or kept for ever.

The environment's SOAK_SECONDS says for how long: three seconds where it does not, ten minutes in `make test-soak`.
"""

from __future__ import annotations

import gc
import os
import random
import re
import sys
import threading
import time
from array import array
from collections.abc import Callable
from itertools import count
from typing import Final

import numpy as np
from clocked import Echo, serial
from tract_inferers import BaseWrapper, BrainId, BrainsFailed, OrphanedData, Runtime, StatefulInferer, UnknownBrain
from tract_inferers.inferer import Inferer
from tract_inferers.responses import Responses
from tract_inferers.scratch import ScratchPadView
from tract_inferers.snapshot import AgentSnapshot

from tract_core.errors import InputError, RunError, TractError

SECONDS = float(os.environ.get("SOAK_SECONDS", "3"))
ROUND = 0.25
CALLERS, AGENTS, BRAINS = 4, 8, 6
GROWTH = 1_000
"""Blocks of memory that there may be more at the end: the times of the last runs of its brains are kept."""

EXPECTED: Final = re.compile(r"an observation of it waits already|waits for this call")
"""What callers are refused now and then."""


class Counted(BaseWrapper):
    """A memory: how often each agent was asked."""

    def __init__(self) -> None:
        self.steps: dict[int, int] = {}

    def invoke(self, inferer: Inferer, pad: ScratchPadView) -> None:
        super().invoke(inferer, pad)
        self.steps |= {agent: self.steps.get(agent, 0) + 1 for agent in pad.ids}

    def end_agent(self, inferer: Inferer, id: int) -> None:  # noqa: A002 - the name in the interface
        self.steps.pop(id, None)

    def snapshot(self, inferer: Inferer, ids: object = None) -> AgentSnapshot:
        return AgentSnapshot(tuple(self.steps), {"steps": np.array([*self.steps.values()])})

    def restore(self, inferer: Inferer, snapshot: AgentSnapshot) -> None:
        self.steps = dict(zip(snapshot.agents, snapshot.arrays["steps"].tolist(), strict=True))


class Soak:
    """A runtime and its callers. Each observation has a number that says who asked whom: no two are the same."""

    def __init__(self) -> None:
        self.runtime = Runtime(threads=3)
        self.numbers = count()
        self.trouble: list[BaseException] = []

    def policy(self, draw: random.Random) -> Echo:
        """One that echoes, fails now and then, is slow now and then, and asks another brain now and then."""
        own = random.Random(draw.random())

        def meanwhile(_: int) -> None:
            chance = own.random()
            if chance < 0.05:
                raise RunError("now and then")
            if chance < 0.1:
                time.sleep(0.0005)
            elif chance < 0.15:
                self.runtime.infer_single(own.choice(self.runtime.brains()), serial(0))

        return Echo(meanwhile)

    def round(self, seed: int) -> None:
        """All callers for a while, and then what became of what they asked."""
        draw = random.Random(seed)
        while len(self.runtime.brains()) < BRAINS:
            self.runtime.add_inferer(StatefulInferer(Counted(), self.policy(draw)))
        for brain in self.runtime.brains()[BRAINS:]:
            self.runtime.remove_inferer(brain)
        callers = [Caller(self, number, random.Random(f"{seed} {number}")) for number in range(CALLERS)]
        threads = [threading.Thread(target=caller.guarded, daemon=True) for caller in callers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "somebody waits for ever"
        if self.trouble:
            raise self.trouble[0]
        last = Caller(self, CALLERS, random.Random(0))
        while any(self.runtime.pending(brain) for brain in self.runtime.brains()):
            last.run()
        self.check([*callers, last])

    def check(self, callers: list[Caller]) -> None:
        """What was asked was told once; where its agent went before, once or not at all."""
        asked = [number for caller in callers for number in caller.asked]
        told = [number for caller in callers for number in caller.told]
        may_be_dropped = {number for caller in callers for number in caller.dropped}
        assert len(set(told)) == len(told), "told twice"
        assert set(told) <= set(asked), "told what nobody asked"
        assert set(asked) - set(told) <= may_be_dropped, "lost"
        assert told


class Caller:
    """One thread: what it asked, what it was told, and what went with an agent that it ended."""

    def __init__(self, soak: Soak, number: int, draw: random.Random) -> None:
        self.soak, self.runtime, self.draw = soak, soak.runtime, draw
        self.agents = range(number * AGENTS, (number + 1) * AGENTS)
        self.asked: list[int] = []
        self.told: list[int] = []
        self.dropped: list[int] = []
        self.last: dict[tuple[int, int], int] = {}

    def guarded(self) -> None:
        try:
            self.work()
        except BaseException as error:  # raised where the threads are joined
            self.soak.trouble.append(error)

    def work(self) -> None:
        often = [self.push, self.push_many, self.run] * 6
        acts = [*often, self.begin, self.end, self.end, self.single, self.swap, self.keep, self.look, self.come_and_go]
        until = time.perf_counter() + ROUND
        while time.perf_counter() < until:
            brains = self.runtime.brains()
            try:
                self.draw.choice(acts)(self.draw.choice(brains))
            except UnknownBrain:  # another one removed it
                continue
            except InputError as error:
                if not EXPECTED.search(str(error)):
                    raise

    def numbered(self, brain: BrainId, agent: int) -> int:
        return next(self.soak.numbers) << 32 | brain << 8 | agent

    def push(self, brain: BrainId) -> None:
        agent = self.draw.choice(self.agents)
        number = self.numbered(brain, agent)
        self.runtime.push(brain, agent, serial(number))
        self.asked.append(number)
        self.last[brain, agent] = number

    def push_many(self, brain: BrainId) -> None:
        agents = self.draw.sample(self.agents, self.draw.randint(0, 3))
        numbers = [self.numbered(brain, agent) for agent in agents]
        self.runtime.push_many(brain, agents, {"serial": np.array(numbers, np.int64)})
        self.asked += numbers
        self.last |= {(brain, agent): number for agent, number in zip(agents, numbers, strict=True)}

    def begin(self, brain: BrainId) -> None:
        self.runtime.begin_agent(brain, self.draw.choice(self.agents))

    def end(self, brain: BrainId) -> None:
        agent = self.draw.choice(self.agents)
        self.runtime.end_agent(brain, agent)
        self.dropped += [self.last[brain, agent]] if (brain, agent) in self.last else []

    def single(self, brain: BrainId) -> None:
        number = self.numbered(brain, 0)
        try:
            assert self.runtime.infer_single(brain, serial(number), self.agents[0])["echo"] == number
        except RunError:
            return

    def swap(self, brain: BrainId) -> None:
        self.runtime.replace_inferer(brain, self.soak.policy(self.draw))

    def keep(self, brain: BrainId) -> None:
        self.runtime.restore(brain, self.runtime.snapshot(brain))

    def look(self, brain: BrainId) -> None:
        stats = self.runtime.stats(brain)
        assert 0 <= stats.p50 <= stats.p99
        assert stats.pending >= 0
        assert set(self.runtime.pending(brain)) <= set(range(CALLERS * AGENTS))

    def come_and_go(self, brain: BrainId) -> None:
        self.runtime.add_inferer(StatefulInferer(Counted(), self.soak.policy(self.draw)))
        try:
            self.runtime.remove_inferer(brain)
        except OrphanedData as orphaned:
            (of,) = orphaned.orphans.values()
            self.told += [int(one["serial"]) for one in of.values()]

    def run(self, _: object = None) -> None:
        budget = self.draw.choice([0.0, 0.0002, 0.002])
        runs: list[Callable[[], dict[BrainId, Responses]]] = [
            self.runtime.run,
            self.runtime.run_threaded,
            lambda: self.runtime.run_for(budget),
            lambda: self.runtime.run_for_threaded(budget),
        ]
        try:
            found = self.draw.choice(runs)()
        except BrainsFailed as failed:
            found = failed.responses
            if not all(isinstance(error, TractError) for error in failed.errors.values()):
                raise
        for brain, responses in found.items():
            numbers = responses.arrays["echo"].tolist()
            assert [(number >> 8 & 0xFFFFFF, number & 0xFF) for number in numbers] == [
                (brain, one) for one in responses
            ]
            self.told += numbers


def test_soak() -> None:
    soak, start = Soak(), time.perf_counter()
    blocks = array("q")  # in which a number takes no block of its own
    with soak.runtime:
        for number in count():
            soak.round(number)
            gc.collect()
            blocks.append(sys.getallocatedblocks())
            if time.perf_counter() - start > SECONDS and number >= 5:
                break
    assert max(blocks[-3:]) < min(blocks[2:5]) + GROWTH, "memory grows"
