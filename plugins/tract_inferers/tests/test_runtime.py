"""Several policies in one program: who is asked what, what comes back, and what is lost by whom."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest
from clocked import Broken, Echo, SimulatedClock, moving, serial, told
from policies import Affine
from tract_inferers import (
    AgentSnapshot,
    BaseWrapper,
    Batcher,
    BrainId,
    BrainsFailed,
    BrainStats,
    IncompatibleInferer,
    OrphanedData,
    Runtime,
    ScratchPadView,
    Slot,
    StatefulInferer,
    UnknownBrain,
)
from tract_inferers.inferer import Inferer

from tract_core.errors import InputError, RunError

RUNS = ["run", "run_threaded", "run_for", "run_for_threaded"]


def called(runtime: Runtime, run: str) -> Any:
    return getattr(runtime, run)(*[1000.0] * ("for" in run))


def obs(value: float) -> dict[str, np.ndarray]:
    return {"obs": np.array(value, np.float32)}


def acts(responses: object) -> dict[int, dict[int, float]]:
    """By brain and agent, what an `Affine` said."""
    return {brain: {agent: float(one["act"]) for agent, one in of.items()} for brain, of in responses.items()}


class Steps(BaseWrapper):
    """Adds to what a policy says how often its agent was asked before."""

    def __init__(self) -> None:
        self.steps: dict[int, int] = {}

    def invoke(self, inferer: Inferer, pad: ScratchPadView) -> None:
        super().invoke(inferer, pad)
        pad.outputs[0][...] += [self.steps.get(agent, 0) for agent in pad.ids]
        self.steps |= {agent: self.steps.get(agent, 0) + 1 for agent in pad.ids}

    def begin_agent(self, inferer: Inferer, id: int) -> None:  # noqa: A002 - the name in the interface
        self.steps[id] = 0

    def end_agent(self, inferer: Inferer, id: int) -> None:  # noqa: A002 - the name in the interface
        self.steps.pop(id, None)

    def snapshot(self, inferer: Inferer, ids: Any = None) -> AgentSnapshot:
        agents = tuple(self.steps if ids is None else ids)
        return AgentSnapshot(agents, {"steps": np.array([self.steps[agent] for agent in agents])})

    def restore(self, inferer: Inferer, snapshot: AgentSnapshot) -> None:
        self.steps |= dict(zip(snapshot.agents, snapshot.arrays["steps"].tolist(), strict=True))


@pytest.mark.parametrize("run", RUNS)
def test_every_brain_with_rows_runs_in_the_order_of_insertion(run: str) -> None:
    with Runtime() as runtime:
        double, triple, idle = (runtime.add_inferer(Affine(factor)) for factor in (2, 3, 4))
        runtime.push(triple, 7, obs(1))
        runtime.push(double, 7, obs(1))
        runtime.push_many(double, [9, 8], {"obs": np.array([5, 6], np.float32)})
        found = called(runtime, run)
        assert list(found) == [double, triple]
        assert acts(found) == {0: {7: 2, 9: 10, 8: 12}, 1: {7: 3}}
        assert list(found[double]) == [7, 9, 8]
        assert idle not in found
        assert called(runtime, run) == {}


def test_run_keeps_to_the_order_of_insertion_whoever_ran_last() -> None:
    runtime = Runtime()
    brains = [runtime.add_inferer(Echo()) for _ in range(3)]
    runtime.push(brains[0], 1, serial(0))
    runtime.run()
    for brain in reversed(brains):
        runtime.push(brain, 1, serial(1))
    assert list(runtime.run()) == brains


def test_without_brains_nothing_runs() -> None:
    with Runtime() as runtime:
        assert [called(runtime, run) for run in RUNS] == [{}, {}, {}, {}]
        assert runtime.brains() == []
        runtime.clear()


def test_the_number_of_a_brain_is_an_integer_that_no_other_one_gets() -> None:
    runtime = Runtime()
    first, second = (runtime.add_inferer(Affine(1)) for _ in range(2))
    assert isinstance(first, BrainId)
    assert (first, second) == (0, 1)
    assert (repr(second), str(second), f"{second}") == ("BrainId(1)", "1", "1")
    runtime.remove_inferer(second)
    third = runtime.add_inferer(Affine(1))
    runtime.clear()
    assert (third, runtime.add_inferer(Affine(1))) == (2, 3)
    assert runtime.brains() == [3]


def test_there_are_more_brains_than_16_bits_can_count(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    monkeypatch.setattr(runtime, "_numbers", count(2**16 - 1))
    for _ in range(2):
        runtime.push(runtime.add_inferer(Affine(1)), 1, obs(3))
    assert acts(runtime.run()) == {65535: {1: 3}, 65536: {1: 3}}


def test_a_policy_is_told_the_number_of_its_brain() -> None:
    class Numbered(Echo):
        def infer_raw(self, pad: ScratchPadView) -> None:
            pad.outputs[0][...] = pad.brain

    runtime = Runtime()
    for _ in range(3):
        runtime.push(runtime.add_inferer(Numbered()), 1, serial(99))
    assert told(runtime.run()) == {0: {1: 0}, 1: {1: 1}, 2: {1: 2}}
    assert runtime.infer_single(2, serial(99))["echo"] == 2


USES: list[Callable[[Runtime, int], object]] = [
    lambda runtime, brain: runtime.push(brain, 1, obs(1)),
    lambda runtime, brain: runtime.push_many(brain, [1], {"obs": np.zeros(1, np.float32)}),
    lambda runtime, brain: runtime.infer_single(brain, obs(1)),
    lambda runtime, brain: runtime.begin_agent(brain, 1),
    lambda runtime, brain: runtime.end_agent(brain, 1),
    lambda runtime, brain: runtime.snapshot(brain),
    lambda runtime, brain: runtime.restore(brain, AgentSnapshot((), {})),
    lambda runtime, brain: runtime.input_shapes(brain),
    lambda runtime, brain: runtime.output_shapes(brain),
    lambda runtime, brain: runtime.pending(brain),
    lambda runtime, brain: runtime.stats(brain),
    lambda runtime, brain: runtime.remove_inferer(brain),
    lambda runtime, brain: runtime.replace_inferer(brain, Affine(1)),
]


@pytest.mark.parametrize("use", USES)
def test_a_brain_that_is_not_there_is_unknown(use: Callable[[Runtime, Any], object]) -> None:
    runtime = Runtime()
    for _ in range(13):
        gone = runtime.add_inferer(Affine(1))
    runtime.remove_inferer(gone)
    last = ", ".join(map(str, range(2, 12)))
    with pytest.raises(UnknownBrain, match=rf"there is no brain 12; brains: \.\.\., {last}\n  hint: add_inferer"):
        use(runtime, gone)
    runtime.clear()
    for other in ("gone", 3, -1, None, [], 1.5):
        with pytest.raises(UnknownBrain, match=r"there is no brain .*; brains: none"):
            use(runtime, other)


def test_what_is_refused_changes_nothing() -> None:
    runtime = Runtime()
    brain = runtime.add_inferer(Affine(2), refuse_nan=True)
    runtime.push(brain, 1, obs(1))
    with pytest.raises(InputError, match="agent 1: an observation of it waits already"):
        runtime.push(brain, 1, obs(2))
    with pytest.raises(InputError, match="there is no input 'obz'"):
        runtime.push(brain, 2, {"obz": 1.0})
    with pytest.raises(InputError, match="is not a number"):
        runtime.push(brain, 2, obs(float("nan")))
    with pytest.raises(InputError, match="is not a number"):
        runtime.infer_single(brain, obs(float("nan")))
    with pytest.raises(InputError, match="is not a number"):
        runtime.push_many(brain, [3, 4], {"obs": np.array([1, np.nan], np.float32)})
    assert acts(runtime.run()) == {brain: {1: 2}}
    other = runtime.add_inferer(Affine(2))
    runtime.push(other, 1, obs(float("nan")))
    assert np.isnan(runtime.run()[other][1]["act"])


def test_one_observation_runs_at_once_and_those_that_wait_wait_on() -> None:
    runtime = Runtime()
    brain = runtime.add_inferer(Affine(2))
    runtime.push(brain, 0, obs(10))
    assert runtime.infer_single(brain, obs(1))["act"] == 2
    assert runtime.infer_single(brain, obs(3), 5)["act"] == 6
    assert runtime.pending(brain) == {0: {"obs": 10}}
    assert acts(runtime.run()) == {brain: {0: 20}}
    runtime.infer_single(brain, obs(1))
    assert runtime.run() == {}
    assert runtime.stats(brain).rows == 4


def test_one_observation_that_fails_leaves_nothing_behind() -> None:
    runtime = Runtime()
    brain = runtime.add_inferer(Broken())
    for _ in range(2):
        with pytest.raises(RunError, match="it is broken"):
            runtime.infer_single(brain, serial(1))
    assert runtime.pending(brain) == {}
    assert runtime.stats(brain).errors == 2


@pytest.mark.parametrize("run", RUNS)
def test_what_fails_keeps_its_rows_and_takes_nothing_from_the_others(run: str) -> None:
    with Runtime(threads=2) as runtime:
        brains = [runtime.add_inferer(kind()) for kind in (Echo, Broken, Echo, Broken)]
        for brain in brains:
            runtime.push_many(brain, [4, 2], {"serial": np.array([10, 20]) + brain})
        with pytest.raises(BrainsFailed, match="2 of 4 brains failed:\n  brain 1: RunError: it is broken\n") as failed:
            called(runtime, run)
        assert told(failed.value.responses) == {0: {4: 10, 2: 20}, 2: {4: 12, 2: 22}}
        assert {brain: type(error) for brain, error in failed.value.errors.items()} == {1: RunError, 3: RunError}
        assert isinstance(failed.value.__cause__, ExceptionGroup)
        runtime.replace_inferer(brains[1], Echo())
        runtime.replace_inferer(brains[3], Echo())
        assert told(called(runtime, run)) == {1: {4: 11, 2: 21}, 3: {4: 13, 2: 23}}


def test_an_agent_that_goes_takes_its_row_with_it() -> None:
    runtime, inferer = Runtime(), Affine(2)
    brain = runtime.add_inferer(inferer)
    runtime.begin_agent(brain, 1)
    runtime.push_many(brain, [1, 2, 3], {"obs": np.array([1, 2, 3], np.float32)})
    runtime.end_agent(brain, 2)
    runtime.end_agent(brain, 9)
    assert inferer.told == [("begin", 1), ("end", 2), ("end", 9)]
    assert acts(runtime.run()) == {brain: {1: 2, 3: 6}}
    for use in (runtime.begin_agent, runtime.end_agent):
        with pytest.raises(InputError, match="an agent is an integer from 0"):
            use(brain, -1)


def test_several_agents_come_and_go() -> None:
    runtime = Runtime()
    brain = runtime.add_inferer(StatefulInferer(Steps(), Affine(2)))
    runtime.begin_agents(brain, np.array([1, 2, 3]))
    for agent in (1, 2, 3):
        runtime.push(brain, agent, obs(agent))
    assert runtime.waiting(brain) == 3
    with pytest.raises(InputError, match="agent 2 is there twice"):
        runtime.end_agents(brain, [2, 2])
    runtime.end_agents(brain, [1, 3, 9])
    assert runtime.waiting(brain) == 1
    assert acts(runtime.run()) == {brain: {2: 4}}


def test_the_newest_observation_counts_where_that_is_wanted() -> None:
    runtime = Runtime()
    brain = runtime.add_inferer(Affine(2))
    runtime.push(brain, 1, obs(10))
    runtime.push(brain, 1, obs(20), replace=True)
    runtime.push_many(brain, [1, 2], {"obs": np.array([30, 40], np.float32)}, replace=True)
    assert acts(runtime.run()) == {brain: {1: 60, 2: 80}}


def test_what_waited_for_a_brain_that_goes_is_given_back() -> None:
    runtime = Runtime()
    first, second, third = (runtime.add_inferer(Affine(2)) for _ in range(3))
    runtime.push_many(second, [7, 8], {"obs": np.array([1, 2], np.float32)})
    with pytest.raises(OrphanedData, match="waiting when their brain was removed: 2 of brain 1") as orphaned:
        runtime.remove_inferer(second)
    assert orphaned.value.orphans == {second: {7: {"obs": 1}, 8: {"obs": 2}}}
    assert runtime.brains() == [first, third]
    runtime.push(third, 5, obs(3))
    with pytest.raises(OrphanedData, match="removed: 1 of brain 2") as orphaned:
        runtime.clear()
    assert orphaned.value.orphans == {third: {5: {"obs": 3}}}
    assert runtime.brains() == []
    assert runtime.run_for(10) == {}


def test_inputs_and_outputs_are_those_that_callers_see() -> None:
    class Hidden(Steps):
        def input_shapes(self, inferer: Inferer) -> list[Slot]:
            return [slot for slot in inferer.input_shapes() if slot.name != "hidden"]

    runtime = Runtime()
    inferer = StatefulInferer(Hidden(), Affine(2, inputs=[Slot("obs", ()), Slot("hidden", (3,))]))
    brain = runtime.add_inferer(inferer)
    assert [slot.name for slot in runtime.input_shapes(brain)] == ["obs"]
    assert [slot.name for slot in runtime.output_shapes(brain)] == ["act"]
    runtime.push(brain, 1, obs(3))
    assert acts(runtime.run()) == {brain: {1: 6}}


@pytest.mark.parametrize("depth", [1, 2])
def test_the_model_is_replaced_while_agents_live_and_rows_wait(depth: int) -> None:
    stacks, inferer = [Steps() for _ in range(depth)], Affine(1)
    runtime = Runtime()
    policy: Inferer = inferer
    for stack in stacks:
        policy = StatefulInferer(stack, policy)
    brain = runtime.add_inferer(policy)
    for _ in range(2):
        runtime.push(brain, 1, obs(10))
        runtime.run()
    runtime.push(brain, 1, obs(10))
    runtime.replace_inferer(brain, Affine(3))
    assert acts(runtime.run()) == {brain: {1: 30 + 2 * depth}}
    runtime.replace_inferer(brain, StatefulInferer(Steps(), Affine(4)))
    runtime.push(brain, 1, obs(10))
    assert acts(runtime.run()) == {brain: {1: 43}}, "what is remembered goes over to the new stack"
    with pytest.raises(
        IncompatibleInferer, match=r"its layers remember other things: .*'steps'(?s:.*)without its layers"
    ):
        runtime.replace_inferer(brain, StatefulInferer(BaseWrapper(), Affine(5)))
    runtime.push(brain, 1, obs(10))
    assert acts(runtime.run()) == {brain: {1: 44}}


@pytest.mark.parametrize("stateful", [False, True])
def test_a_policy_with_another_interface_takes_no_place(stateful: bool) -> None:
    runtime = Runtime()
    old = StatefulInferer(Steps(), Affine(2)) if stateful else Affine(2)
    brain = runtime.add_inferer(old)
    runtime.push(brain, 1, obs(10))
    for new in (Affine(3, inputs=[Slot("obs", (2,))]), Echo(), StatefulInferer(Steps(), Echo())):
        with pytest.raises(IncompatibleInferer, match="new inferer: input 0"):
            runtime.replace_inferer(brain, new)
    assert acts(runtime.run()) == {brain: {1: 20}}


def test_a_policy_that_shows_other_inputs_takes_no_place() -> None:
    class Hidden(Steps):
        def input_shapes(self, inferer: Inferer) -> list[Slot]:
            return []

    runtime = Runtime()
    brain = runtime.add_inferer(Affine(2))
    with pytest.raises(IncompatibleInferer, match=r"new inferer: input 0, obs: .*, is missing"):
        runtime.replace_inferer(brain, StatefulInferer(Hidden(), Affine(2)))


def test_what_the_old_model_took_serves_until_the_new_one_is_measured() -> None:
    clock = SimulatedClock()
    runtime = Runtime(clock=clock)
    brain = runtime.add_inferer(Echo(moving(clock, 0, 2.0)))
    for expected in (0, 0, 2, 2):
        assert runtime.stats(brain).per_row == pytest.approx(expected)
        runtime.infer_single(brain, serial(0))
    runtime.replace_inferer(brain, Echo(moving(clock, 0, 5.0)))
    for expected in (2, 2, 5):
        assert runtime.stats(brain).per_row == pytest.approx(expected)
        runtime.infer_single(brain, serial(0))


def test_the_memory_of_agents_is_kept_and_brought_back() -> None:
    runtime = Runtime()
    brain = runtime.add_inferer(StatefulInferer(Steps(), Affine(1)))
    for agent in (1, 2, 2):
        runtime.infer_single(brain, obs(0), agent)
    kept = runtime.snapshot(brain)
    assert kept.agents == (1, 2)
    assert runtime.snapshot(brain, [2]).arrays["steps"].tolist() == [2]
    runtime.infer_single(brain, obs(0), 1)
    runtime.restore(brain, kept)
    assert runtime.infer_single(brain, obs(0), 1)["act"] == 1
    runtime.begin_agent(brain, 2)
    assert runtime.infer_single(brain, obs(0), 2)["act"] == 0


def test_a_brain_without_memory_has_none_to_keep() -> None:
    runtime = Runtime()
    brain = runtime.add_inferer(Affine(1))
    for use in (runtime.snapshot, lambda it: runtime.restore(it, AgentSnapshot((), {}))):
        with pytest.raises(InputError, match="brain 0: Affine remembers nothing of its agents\n  hint: a Recurrent"):
            use(brain)


def test_what_became_of_a_brain_is_counted() -> None:
    clock = SimulatedClock()
    runtime = Runtime(clock=clock)
    brain = runtime.add_inferer(Echo(moving(clock, 1.0, 0.5)))
    assert runtime.stats(brain) == BrainStats(0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0)
    for rows in [1, *range(1, 101)]:
        runtime.push_many(brain, range(rows), {"serial": np.arange(rows)})
        runtime.run()
    runtime.push(brain, 3, serial(0))
    stats = runtime.stats(brain)
    assert (stats.runs, stats.rows, stats.errors, stats.pending) == (101, 5051, 0, 1)
    assert (stats.p50, stats.p99) == (26.0, 50.5)
    assert (stats.fixed, stats.per_row) == pytest.approx((1.0, 0.5), rel=0.1)


@pytest.mark.parametrize("run", RUNS)
def test_an_error_is_counted_and_not_timed(run: str) -> None:
    clock = SimulatedClock()
    with Runtime(clock=clock) as runtime:
        brain = runtime.add_inferer(Broken(moving(clock, 1.0)))
        runtime.push(brain, 3, serial(0))
        for _ in range(3):
            with pytest.raises(BrainsFailed, match="1 of 1 brains failed"):
                called(runtime, run)
        assert runtime.stats(brain) == BrainStats(0, 0, 3, 1, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("threads", [0, -1, 1.0, True, "2"])
def test_what_is_no_number_of_threads_is_refused(threads: Any) -> None:
    with pytest.raises(InputError, match=r"threads: is .*, wanted an integer from 1 on, or None"):
        Runtime(threads)


def test_a_batcher_of_its_own_serves_a_policy_as_a_brain_does() -> None:
    inferer, runtime = Affine(3), Runtime()
    batcher = Batcher(inferer, brain=runtime.add_inferer(inferer))
    batcher.push(4, obs(2))
    runtime.push(0, 4, obs(2))
    assert acts({0: batcher.execute(inferer)}) == acts(runtime.run())
