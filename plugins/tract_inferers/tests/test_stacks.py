"""Stacks of layers in any order, nested or not, against a plain loop over agents."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from policies import Recurrent, TwoOfEach
from tract_inferers import (
    BaseWrapper,
    EpsilonInjector,
    EpsilonInjectorWrapper,
    HighQualityNoiseGenerator,
    RecurrentInfo,
    RecurrentTracker,
    RecurrentTrackerWrapper,
    StatefulInferer,
)

from tract_core.errors import InputError

SEEDS = {"noise": 5, "more": 6}
STATES = {"h": "h", "c_in": "c_out"}
INITIAL = {"h": np.full(2, 3, np.float32)}
SIZES = [[1], [1, 2], [1, 3, 4], list(range(1, 100))]


def stacked(random: Random, policy: Any) -> tuple[StatefulInferer, list[str]]:
    """A random stack, and the names of the inputs that its layers take care of."""
    layers = random.sample(["h", "c_in", "both", "noise", "more"], random.randint(0, 5))
    layers = [one for one in layers if not ("both" in layers and one in STATES)]
    inferer, stack = policy, BaseWrapper()
    for layer in layers:
        if layer in SEEDS:
            generator = HighQualityNoiseGenerator(SEEDS[layer])
            stack = EpsilonInjectorWrapper.with_generator(stack, inferer, generator, layer)
        else:
            keys = list(STATES) if layer == "both" else [layer]
            random.shuffle(keys)
            infos = [RecurrentInfo(key, STATES[key]) for key in keys]
            stack = RecurrentTrackerWrapper.new(stack, inferer, infos, initial=INITIAL if "h" in keys else {})
        if random.random() < 0.3:
            inferer, stack = StatefulInferer(stack, inferer), BaseWrapper()
    return StatefulInferer(stack, inferer), layers


class Loop:
    """What agents remember, one by one, without any of the classes of the stack."""

    def __init__(self, stack: StatefulInferer, policy: TwoOfEach) -> None:
        self.policy = policy
        shown = [name for name, _ in stack.input_shapes()]
        self.states = [key for key in STATES if key not in shown]
        self.noises = [key for key in SEEDS if key not in shown]
        self.initial = {key: INITIAL.get(key, np.zeros(2, np.float32)) for key in self.states}
        self.memory: dict[int, dict[str, np.ndarray]] = {}
        self.steps: dict[int, int] = {}

    def noise(self, key: str, agent: int) -> np.ndarray:
        out = np.empty((1, 2), np.float32)
        step = np.array([self.steps.get(agent, 0)], np.uint64)
        HighQualityNoiseGenerator(SEEDS[key]).generate(out, ids=np.array([agent], np.uint64), steps=step, brain=0)
        return out[0]

    def run(self, agent: int, observation: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        given = {**observation, **(self.memory[agent] if self.states else {})}
        given |= {key: self.noise(key, agent) for key in self.noises}
        values = self.policy.step([given[name] for name, _ in self.policy.raw_input_shapes()])
        found = {name: value for (name, _), value in zip(self.policy.raw_output_shapes(), values, strict=True)}
        for key in self.states:
            self.memory[agent][key] = found.pop(STATES[key])
        self.steps[agent] = self.steps.get(agent, 0) + 1
        return found


@pytest.mark.parametrize("seed", range(150))
def test_a_stack_is_a_loop_over_agents(seed: int) -> None:
    random, numbers = Random(seed), np.random.default_rng(seed)
    policy = TwoOfEach(random.choice(SIZES))
    stack, layers = stacked(random, policy)
    loop = Loop(stack, policy)
    agents = [*range(9), 2**64 - 1]
    for _ in range(40):
        doing = random.choice(["begin", "end", *["run"] * 5])
        batch = random.sample(agents, random.randint(0, len(agents)))
        if doing == "begin":
            for agent in batch[:4]:
                stack.begin_agent(agent)
                loop.memory[agent] = {key: value.copy() for key, value in loop.initial.items()}
        elif doing == "end":
            for agent in batch[:2]:
                stack.end_agent(agent)
                loop.memory.pop(agent, None)
        else:
            shown = [name for name, _ in stack.input_shapes()]
            given = {name: numbers.standard_normal((len(batch), 2), np.float32) for name in shown}
            if loop.states and any(agent not in loop.memory for agent in batch):
                with pytest.raises(InputError, match="not begun"):
                    stack.infer_many(batch, given)
                batch = [agent for agent in batch if agent in loop.memory]
                given = {name: array[: len(batch)] for name, array in given.items()}
            check(random, stack, loop, batch, given)
    assert layers == [] or policy.calls


def check(random: Random, stack: StatefulInferer, loop: Loop, batch: list[int], given: dict[str, Any]) -> None:
    if batch and random.random() < 0.3:
        calls, rows = 0, len(batch)
        while rows:
            rows -= loop.policy.select_batch_size(rows)
            calls += 1
        loop.policy.fail_after = random.randrange(calls)
        with pytest.raises(RuntimeError, match="it fails"):
            stack.infer_many(batch, given)
        loop.policy.fail_after = None
    found = stack.infer_many(batch, given)
    for row, agent in enumerate(batch):
        wanted = loop.run(agent, {name: array[row] for name, array in given.items()})
        assert {name: value.tobytes() for name, value in found[agent].items()} == {
            name: value.tobytes() for name, value in wanted.items()
        }


@pytest.mark.parametrize("seed", range(60))
def test_a_run_that_is_restored_replays_bit_for_bit(seed: int) -> None:
    random = Random(seed)
    stack, _ = stacked(random, TwoOfEach(random.choice(SIZES)))
    names = [name for name, _ in stack.input_shapes()]

    def run(agents: list[int], seed: int) -> list[bytes]:
        order, numbers, found = Random(seed), np.random.default_rng(seed), []
        for turn in range(5):
            batch = order.sample(agents, len(agents))
            given = {name: numbers.standard_normal((len(batch), 2), np.float32) for name in names}
            if turn == 2:
                stack.end_agent(batch[0])
                stack.begin_agent(batch[0])
            found += [array.tobytes() for array in stack.infer_many(batch, given).arrays.values()]
        return found

    def begin_and_run() -> list[bytes]:
        for agent in (3, 7, 8):
            stack.begin_agent(agent)
        return run([0, 1, 2, 3, 4, 7, 8], seed + 1)

    for agent in range(5):
        stack.begin_agent(agent)
    if random.random() < 0.8:
        run([0, 1, 2, 3], seed)
    stack.end_agent(3)
    kept = stack.snapshot()
    assert set(kept.agents) >= {0, 1, 2, 4} or not kept.arrays
    first = begin_and_run()
    stack.restore(kept.as_all())
    assert begin_and_run() == first


def test_agents_live_on_when_the_policy_is_replaced() -> None:
    old, new = TwoOfEach([1, 2]), TwoOfEach([1, 3], factor=2.0)
    layer = RecurrentTrackerWrapper.wrap(BaseWrapper(), old, initial=INITIAL)
    generator = HighQualityNoiseGenerator(SEEDS["noise"])
    stack = StatefulInferer(EpsilonInjectorWrapper.with_generator(layer, old, generator, "noise"), old)
    loop = Loop(stack, old)
    assert (loop.states, loop.noises) == (["h", "c_in"], ["noise"])
    for agent in range(5):
        stack.begin_agent(agent)
        loop.memory[agent] = dict(loop.initial)
    given = {name: np.ones((4, 2), np.float32) for name, _ in stack.input_shapes()}
    check(Random(1), stack, loop, [3, 1, 0, 4], given)
    loop.policy = new
    check(Random(1), stack.with_new_inferer(new), loop, [4, 1, 2, 0], given)
    stack.replace_inferer(new)
    check(Random(1), stack, loop, [2, 1, 0, 3], given)


def test_everything_around_a_memory_tells_its_agents() -> None:
    stacked = RecurrentTrackerWrapper.wrap(BaseWrapper(), Recurrent())
    around: list[StatefulInferer] = [
        EpsilonInjector.wrap(RecurrentTracker.wrap(Recurrent()), "eps"),
        RecurrentTracker.wrap(EpsilonInjector.wrap(Recurrent(), "eps")),
        StatefulInferer(EpsilonInjectorWrapper.wrap(stacked, Recurrent(), "eps"), Recurrent()),
    ]
    for policy in around:
        assert policy.agents() == []
        for agent in (7, 2**64 - 1, 0):
            policy.begin_agent(agent)
        policy.end_agent(0)
        assert policy.agents() == [7, 2**64 - 1]


def test_where_there_is_no_memory_nobody_has_one() -> None:
    policy = EpsilonInjector.wrap(Recurrent(), "eps")
    policy.begin_agent(7)
    assert policy.agents() == []
