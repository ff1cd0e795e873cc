"""What is known of agents is kept, sent, and brought back."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from policies import Counting, Recurrent
from tract_inferers import (
    AgentSnapshot,
    BaseWrapper,
    EpsilonInjector,
    EpsilonInjectorWrapper,
    HighQualityNoiseGenerator,
    RecurrentTracker,
    RecurrentTrackerWrapper,
    StatefulInferer,
)

from tract_core.errors import InputError


def remembering(*, noise_below: bool = False) -> StatefulInferer:
    policy, generator = Recurrent(), HighQualityNoiseGenerator(1)
    if noise_below:
        below = EpsilonInjectorWrapper.with_generator(BaseWrapper(), policy, generator, "eps")
        return StatefulInferer(RecurrentTrackerWrapper.wrap(below, policy), policy)
    below = RecurrentTrackerWrapper.wrap(BaseWrapper(), policy)
    return StatefulInferer(EpsilonInjectorWrapper.with_generator(below, policy, generator, "eps"), policy)


def run(stack: StatefulInferer, agents: list[int]) -> list[list[float]]:
    return stack.infer_many(agents, {"obs": np.ones((len(agents), 3), np.float32)}).arrays["act"].tolist()


def begun(*agents: int, **options: Any) -> StatefulInferer:
    stack = remembering(**options)
    for agent in agents:
        stack.begin_agent(agent)
    return stack


def test_a_snapshot_is_what_agents_remember() -> None:
    stack = begun(1, 2, 3)
    run(stack, [3, 1])
    run(stack, [3])
    kept = stack.snapshot()
    assert kept.agents == (1, 2, 3)
    assert set(kept.arrays) == {"h", "noise:eps"}
    assert kept.arrays["noise:eps"].tolist() == [1, 0, 2]
    assert kept.arrays["noise:eps"].dtype == np.uint64
    assert kept.arrays["h"].shape == (3, 2)
    assert kept.arrays["h"][1].tolist() == [0, 0]
    assert kept.arrays["h"][0].tolist() != [0, 0]
    one = stack.snapshot([3])
    assert one.agents == (3,)
    assert one.arrays["h"].tolist() == kept.arrays["h"][2:].tolist()
    assert one.arrays["noise:eps"].tolist() == [2]
    several = stack.snapshot([3, 1])
    assert several.arrays["h"].tolist() == kept.arrays["h"][[2, 0]].tolist()
    before = kept.arrays["h"].copy()
    run(stack, [1, 2, 3])
    assert (kept.arrays["h"] == before).all()


@pytest.mark.parametrize("noise_below", [True, False])
def test_agents_go_on_where_they_were(noise_below: bool) -> None:
    stack = begun(1, 2, 3, noise_below=noise_below)
    run(stack, [1, 2, 3])
    kept = pickle.loads(pickle.dumps(stack.snapshot()))
    wanted = [run(stack, [2, 1, 3]) for _ in range(3)]
    stack.restore(kept)
    assert [run(stack, [2, 1, 3]) for _ in range(3)] == wanted
    other = begun(noise_below=not noise_below)  # a stack in another order, where nobody has begun
    other.restore(kept)
    assert [run(other, [2, 1, 3]) for _ in range(3)] == wanted
    stack.restore(kept.of_agents([3, 1]))
    assert run(stack, [1])[0] == wanted[0][1]
    assert run(stack, [2])[0] not in [turn[0] for turn in wanted]


def test_agents_come_back_under_other_numbers() -> None:
    stack = begun(1, 2)
    run(stack, [1, 2])
    kept = stack.snapshot()
    for renamed in (kept.with_agents([7, 1]), kept.with_agents({1: 7, 2: 1})):
        assert renamed.agents == (7, 1)
        stack.restore(renamed)
        found = stack.snapshot([7, 1])
        assert all(found.arrays[name].tolist() == kept.arrays[name].tolist() for name in kept.arrays)
    assert kept.with_agents({2: 5}).agents == (1, 5)
    for wrong in ([1], [1, 1], {1: 2}, [1, 2, 3]):
        with pytest.raises(InputError, match="snapshot: wanted 2 different agents, got"):
            kept.with_agents(wrong)
    with pytest.raises(InputError, match="snapshot: agent 9 is not in it"):
        kept.with_agents({9: 1})
    with pytest.raises(InputError, match="snapshot: agent 9 is not in it"):
        kept.of_agents([1, 9])


def test_others_stay_unless_it_is_of_all() -> None:
    stack = begun(1, 2)
    run(stack, [1])
    kept = stack.snapshot()
    stack.begin_agent(3)
    run(stack, [3])
    stack.restore(kept)
    assert stack.snapshot().agents == (1, 2, 3)
    assert stack.snapshot([3]).arrays["noise:eps"].tolist() == [1]
    stack.restore(kept.as_all())
    assert stack.snapshot().agents == (1, 2)
    with pytest.raises(InputError, match="agent 3 has not begun"):
        run(stack, [3])
    run(stack, [1, 2])


def test_agents_that_have_ended_have_steps_and_no_memory() -> None:
    stack = begun(1, 2, 3)
    run(stack, [1, 2, 3])
    stack.end_agent(2)
    kept = stack.snapshot()
    assert sorted(kept.agents) == [1, 2, 3]
    assert kept.unknown == {"h": {2}}
    assert kept.of_agents([2, 3]).unknown == {"h": {2}}
    assert kept.of_agents([1, 3]).unknown == {}
    assert kept.with_agents({2: 9}).unknown == {"h": {9}}
    stack.begin_agent(2)
    wanted = run(stack, [2])
    stack.restore(kept)
    with pytest.raises(InputError, match="agent 2 has not begun"):
        run(stack, [2])
    stack.begin_agent(2)
    assert run(stack, [2]) == wanted


def test_an_agent_that_is_not_known_has_no_snapshot() -> None:
    with pytest.raises(InputError, match="memory: agent 9 has not begun"):
        begun(1).snapshot([1, 9])
    with pytest.raises(InputError, match="agent 1 is there twice"):
        begun(1).snapshot([1, 1])
    noise = EpsilonInjector.wrap(Recurrent(), "eps")
    assert noise.snapshot([9]).arrays["noise:eps"].tolist() == [0]
    assert noise.snapshot().agents == ()


def state(array: Any) -> dict[str, np.ndarray]:
    return {"h": np.asarray(array, np.float32), "noise:eps": np.zeros(len(array), np.uint64)}


@pytest.mark.parametrize("noise_below", [True, False])
@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (AgentSnapshot((1, 2), {"h": np.zeros((2, 2), np.float32)}), "snapshot: it holds nothing of 'noise:eps'"),
        (AgentSnapshot((1,), {"noise:eps": np.zeros(1, np.uint64)}), "snapshot: it holds nothing of 'h'"),
        (AgentSnapshot((1, 2), state(np.zeros((2, 3)))), r"'h' is float32 of shape \[2, 3\], wanted .* \[2, 2\]"),
        (AgentSnapshot((1, 2), state(np.zeros((1, 2)))), r"shape \[1.*\], wanted .* of shape \[2"),
        (AgentSnapshot((1, 1), state(np.zeros((2, 2)))), "agent 1 is there twice"),
        (AgentSnapshot((-1,), state(np.zeros((1, 2)))), "there is an agent -1"),
        (AgentSnapshot((1,), {**state(np.zeros((1, 2))), "c": np.zeros(1)}), "nothing here remembers 'c'"),
        (AgentSnapshot((1,), {**state([[1, 2]]), "h": np.ones((1, 2))}), "'h' is float64 .*, wanted float32"),
        (AgentSnapshot((1,), {**state([[1, 2]]), "h": np.float32(1)}), r"of shape \[\], wanted float32"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(noise_below: bool, wrong: AgentSnapshot, what: str) -> None:
    stack = begun(1, 2, noise_below=noise_below)
    run(stack, [1, 2])
    before = stack.snapshot()
    with pytest.raises(InputError, match=what):
        stack.restore(wrong)
    after = stack.snapshot()
    assert after.agents == before.agents
    assert all(after.arrays[name].tobytes() == before.arrays[name].tobytes() for name in ("h", "noise:eps"))


def test_agents_move_between_policies_of_one_shape_and_bits_are_kept() -> None:
    one = RecurrentTracker.wrap(Counting((2,), np.dtype(np.uint64)))
    one.begin_agent(4)
    one.infer_many([4], {})
    kept = AgentSnapshot((4,), {"count": np.array([[2**64 - 2, 2**53 + 1]], np.uint64)})
    one.restore(kept)
    assert one.infer_many([4], {}).arrays["seen"].tolist() == [[2**64 - 2, 2**53 + 1]]
    kept.arrays["count"][...] = 0  # the array is copied
    assert one.infer_many([4], {}).arrays["seen"].tolist() == [[2**64 - 1, 2**53 + 2]]


def test_what_several_layers_know_is_put_together() -> None:
    ones = AgentSnapshot((1, 2), {"a": np.ones(2)}).joined(AgentSnapshot((2, 3), {"b": np.full((2, 1), 2)}))
    found = ones.joined(AgentSnapshot((4, 1), {"c": np.ones(2)}))
    assert found.agents == (1, 2, 3, 4)
    assert {name: array.ravel().tolist() for name, array in found.arrays.items()} == {
        "a": [1, 1, 0, 0],
        "b": [0, 2, 2, 0],
        "c": [1, 0, 0, 1],
    }
    assert found.unknown == {"a": {3, 4}, "b": {1, 4}, "c": {2, 3}}
