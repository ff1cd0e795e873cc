"""A memory for each agent: which outputs it takes, for whom, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from policies import Counting, Named, Recurrent
from tract_inferers import (
    BaseWrapper,
    RecurrentInfo,
    RecurrentTracker,
    RecurrentTrackerWrapper,
    ScratchPadView,
    Slot,
)
from tract_inferers.memory.pairs import find_pairs
from tract_inferers.table import AgentTable

from tract_core.errors import InputError

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)


def counts(tracker: RecurrentTracker, agents: list[int]) -> list[Any]:
    """What each agent remembered before this step, of `Counting` without axes."""
    return tracker.infer_many(agents, {}).arrays["seen"].tolist()


def counting(**options: Any) -> RecurrentTracker:
    return RecurrentTracker.wrap(Counting((), F32), **options)


def test_agents_have_a_memory_of_their_own() -> None:
    tracker = counting()
    assert list(tracker.input_shapes()) == []
    assert list(tracker.output_shapes()) == [Slot("seen", ())]
    for agent in (5, 2**64 - 1, 0):
        tracker.begin_agent(agent)
    assert counts(tracker, [5, 0]) == [0, 0]
    assert counts(tracker, [0, 2**64 - 1, 5]) == [1, 0, 1]
    assert counts(tracker, [5]) == [2]
    assert tracker.agents() == [5, 2**64 - 1, 0]
    tracker.begin_agent(5)
    tracker.end_agent(0)
    tracker.end_agent(77)
    assert tracker.agents() == [5, 2**64 - 1]
    assert counts(tracker, [2**64 - 1, 5]) == [1, 0]
    tracker.begin_agent(0)
    assert counts(tracker, [0, 5]) == [0, 1]


@pytest.mark.parametrize("agent", [-1, 2**64, 1.5, "a"])
def test_what_is_no_agent_does_not_begin(agent: Any) -> None:
    tracker = counting()
    with pytest.raises(InputError, match=r"an agent is an integer from 0 to 2\*\*64 - 1, got"):
        tracker.begin_agent(agent)
    assert tracker.agents() == []


def test_who_never_began_is_refused() -> None:
    tracker = counting(unbegun="refuse")
    tracker.begin_agent(1)
    with pytest.raises(InputError, match="memory: agent 7 has not begun\n  hint: call begin_agent"):
        counts(tracker, [1, 7])
    with pytest.raises(InputError, match="agents 2, 3, 4, 5, 6 and 3 more have not begun"):
        counts(tracker, list(range(1, 10)))
    assert counts(tracker, [1]) == [0]


def test_who_never_began_begins() -> None:
    tracker = counting(unbegun="begin", initial={"count": 10})
    tracker.begin_agent(1)
    assert counts(tracker, [1, 7]) == [10, 10]
    assert counts(tracker, [8, 7, 1]) == [10, 11, 11]
    assert tracker.agents() == [1, 7, 8]


def test_who_never_began_runs_from_the_initial_values() -> None:
    tracker = counting(unbegun="initial", initial={"count": 10})
    tracker.begin_agent(1)
    for turn in range(3):
        assert counts(tracker, [3, 1, 7]) == [10, 10 + turn, 10]
    assert tracker.agents() == [1]


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 0), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, bfloat16, np.int8, np.int64, np.uint64])
def test_state_has_any_shape_and_type(shape: tuple[int, ...], dtype: Any) -> None:
    first = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    tracker = RecurrentTracker.wrap(Counting(shape, np.dtype(dtype)), initial={"count": first})
    for agent in range(3):
        tracker.begin_agent(agent)
    for turn in range(4):
        found = tracker.infer_many([2, 0], {}).arrays["seen"]
        assert found.dtype == dtype
        assert found.tolist() == [(first + dtype(turn)).tolist()] * 2


def test_bits_are_kept() -> None:
    class Echo(Counting):
        def infer_raw(self, pad: ScratchPadView) -> None:
            pad.outputs[0][...] = pad.outputs[1][...] = pad.inputs[0]

    first = np.array([0x7FC00123, 0xFF800001, 0x80000000, 1], np.uint32).view(np.float32)
    tracker = RecurrentTracker.wrap(Echo((4,), F32), initial={"count": first})
    tracker.begin_agent(1)
    for _ in range(3):
        assert tracker.infer_many([1], {}).arrays["seen"].tobytes() == first.tobytes()


def test_the_initial_values_are_checked_and_copied() -> None:
    value = np.ones((), np.float32)
    tracker = counting(initial={"count": value})
    value[...] = 5
    tracker.begin_agent(1)
    assert counts(tracker, [1]) == [1]
    with pytest.raises(InputError, match="initial: no memory 'h'; there are count: float32"):
        counting(initial={"h": value})
    with pytest.raises(InputError, match=r"input 'count': has shape \[2\]"):
        counting(initial={"count": np.zeros(2, np.float32)})
    with pytest.raises(InputError, match="input 'count': is float64, the policy wants float32"):
        counting(initial={"count": np.zeros(())})
    with pytest.raises(InputError, match="unbegun: is 'no', wanted 'refuse', 'begin' or 'initial'"):
        counting(unbegun="no")


def slots(names: str, shape: tuple[int, ...] = (2,)) -> list[Slot]:
    return [Slot(name, shape) for name in names.split()]


@pytest.mark.parametrize(
    ("inputs", "outputs", "pairs"),
    [
        ("obs h c", "h act c", "h>h c>c"),
        ("obs h_in c_in", "act h_out c_out", "h_in>h_out c_in>c_out"),
        ("obs h0 c0", "act cn hn", "h0>hn c0>cn"),
        ("obs h_0 c_0", "act c_n h_n", "h_0>h_n c_0>c_n"),
        ("obs h_0 h_1", "act h_1_out h_0_out", "h_0>h_0_out h_1>h_1_out"),
        ("state obs", "next_state act", "state>next_state"),
        ("obs state", "act new_state", "state>new_state"),
        ("obs hiddenIn", "act hiddenOut", "hiddenIn>hiddenOut"),
        ("lstm_hidden_state.1 lstm_cell_state.1 obs", "act lstm_hidden_state lstm_cell_state",
         "lstm_hidden_state.1>lstm_hidden_state lstm_cell_state.1>lstm_cell_state"),
        ("past_x obs", "act present_x", "past_x>present_x"),
        ("x obs", "act x_out", "x>x_out"),
        ("h:0 obs", "act h_out:0", "h:0>h_out:0"),
        ("h h_in obs", "h h_out act", "h>h h_in>h_out"),
        ("recurrent_in obs", "act recurrent_out", "recurrent_in>recurrent_out"),
    ],
)  # fmt: skip
def test_pairs_are_found_by_name(inputs: str, outputs: str, pairs: str) -> None:
    found = find_pairs(slots(inputs), slots(outputs))
    assert " ".join(f"{one.inkey}>{one.outkey}" for one in found) == pairs


def test_pairs_have_one_shape_and_type() -> None:
    inputs = [Slot("x", (2,)), Slot("y", (3,)), Slot("z", (2,), F64), Slot("z_in", (2,))]
    outputs = [Slot("x", (3,)), Slot("y", (3,)), Slot("z", (2,)), Slot("x_out", (2,))]
    assert find_pairs(inputs, outputs) == [
        RecurrentInfo("x", "x_out"), RecurrentInfo("y", "y"), RecurrentInfo("z_in", "z"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [("obs", "act"), ("input", "output"), ("in", "out"), ("obs", ""), ("", "act"), ("a b", "c d")],
)
def test_no_pair_is_an_error_that_says_what_there_is(inputs: str, outputs: str) -> None:
    policy = Named(slots(inputs), slots(outputs))
    with pytest.raises(InputError, match=r"no output has the name, .*; inputs: \[.*\]; outputs: \[") as error:
        RecurrentTracker.wrap(policy)
    for name in (*inputs.split(), *outputs.split()):
        assert f"{name}: 2,float32" in str(error.value)
    assert "RecurrentTracker.new(policy, [RecurrentInfo('h_in', 'h_out')])" in str(error.value)


@pytest.mark.parametrize(
    ("inputs", "outputs", "what"),
    [
        ("h_in h_prev obs", "h_out act", "inputs 'h_in' and 'h_prev' and outputs 'h_out' are alike"),
        ("h_in obs", "h_out h_next", "inputs 'h_in' and outputs 'h_out' and 'h_next' are alike"),
        ("h0 h1 obs", "hn act", "inputs 'h0' and 'h1' and outputs 'hn' are alike"),
    ],
)
def test_pairs_that_are_not_clear_are_refused(inputs: str, outputs: str, what: str) -> None:
    with pytest.raises(InputError, match=rf"{what}, so it is not clear which are pairs; inputs: \["):
        RecurrentTracker.wrap(Named(slots(inputs), slots(outputs)))


@pytest.mark.parametrize(
    ("pairs", "what"),
    [
        ([("k", "h")], "no input named 'k'; there are obs: 3,float32; h: 2,float32; eps: 2,float32"),
        ([("h", "k")], "no output named 'k'; there are h: 2,float32; act: 2,float32"),
        ([("obs", "h")], "input obs: 3,float32 and output h: 2,float32 have different shapes or types"),
        ([("h", "h"), ("h", "act")], "memory: input 'h' is in two pairs"),
        ([("h", "h"), ("eps", "h")], "memory: output 'h' is in two pairs"),
        ([], r"there are no pairs; inputs: \[obs"),
    ],
)
def test_pairs_that_do_not_fit_are_refused(pairs: list[tuple[str, str]], what: str) -> None:
    with pytest.raises(InputError, match=what):
        RecurrentTracker.new(Recurrent(), [RecurrentInfo(*pair) for pair in pairs])


def test_what_a_layer_below_hides_is_refused() -> None:
    policy = Recurrent()
    below = RecurrentTrackerWrapper.wrap(BaseWrapper(), policy)
    with pytest.raises(InputError, match=r"no input named 'h'; .*\n *hint: a layer below takes care of it already"):
        RecurrentTrackerWrapper.new(below, policy, [RecurrentInfo("h", "act")])
    with pytest.raises(InputError, match=r"no output named 'h'; .*\n *hint: a layer below takes care of it already"):
        RecurrentTrackerWrapper.new(below, policy, [RecurrentInfo("eps", "h")])
    with pytest.raises(InputError, match="no output has the name"):
        RecurrentTrackerWrapper.wrap(below, policy)
    above = RecurrentTrackerWrapper.new(below, policy, [RecurrentInfo("eps", "act")])
    assert [name for name, _ in above.input_shapes(policy)] == ["obs"]
    assert above.output_shapes(policy) == []


def test_memory_is_flat_while_agents_come_and_go() -> None:
    slot = Slot("count", ())
    table = AgentTable([slot], [np.float32(3)], adopts=False)
    random, there = Random(1), set[int]()
    for agent in range(20_000):
        table.begin([agent])
        there.add(agent)
        if len(there) > 50:
            gone = random.choice(sorted(there))
            table.end([gone])
            there.remove(gone)
        if agent % 997 == 0:
            found = table.find(sorted(there))
            seen = np.empty(len(there), np.float32)
            table.take(found, [seen])
            assert found.complete
            table.put(found, [np.float32(sorted(there))])
    assert table.capacity == 64
    assert sorted(table.agents()) == sorted(there)
    kept = table.snapshot(None)
    last = 997 * (20_000 // 997)
    assert kept.arrays["count"].tolist() == [agent if agent <= last else 3 for agent in kept.agents]


class Meddling(Counting):
    """Something happens while a batch runs."""

    meddle: Callable[[], object] = int

    def infer_raw(self, pad: ScratchPadView) -> None:
        super().infer_raw(pad)
        self.meddle()


@pytest.mark.parametrize("unbegun", ["begin", "refuse"])
def test_who_ends_or_begins_anew_while_a_batch_runs_keeps_nothing_of_it(unbegun: Any) -> None:
    policy = Meddling((), F32)
    tracker = RecurrentTracker.wrap(policy, unbegun=unbegun)
    for agent in range(5):
        tracker.begin_agent(agent)
    counts(tracker, [0, 1, 2, 3, 4])

    def meddle() -> None:
        tracker.end_agent(0)
        tracker.begin_agent(1)
        tracker.end_agent(2)
        tracker.begin_agent(2)
        tracker.begin_agent(100)  # perhaps in the row that was 0's
        tracker.begin_agent(9)

    policy.meddle = meddle
    batch = [0, 1, 2, 3, 4, *([9, 10] if unbegun == "begin" else [])]
    counts(tracker, batch)
    assert 0 not in tracker.agents()
    policy.meddle = int
    assert counts(tracker, [1, 2, 3, 4, 100, 9]) == [0, 0, 2, 2, 0, 0]
    assert (10 in tracker.agents()) == (unbegun == "begin")


def test_many_threads_run_their_own_agents_while_others_come_and_go() -> None:
    tracker = counting()
    barrier = Barrier(4)

    def run(first: int) -> list[list[float]]:
        mine = list(range(first, first + 7))
        for agent in mine:
            tracker.begin_agent(agent)
        barrier.wait()
        found = []
        for turn in range(200):
            found.append(counts(tracker, mine))
            other = 1000 + first + turn
            tracker.begin_agent(other)
            tracker.end_agent(other - 3)
        return found

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(run, range(0, 400, 100)):
            assert found == [[turn] * 7 for turn in range(200)]
