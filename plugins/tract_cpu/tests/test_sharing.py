"""Whether runs are shared: what took less time when both ways were tried, without much time lost by trying."""

from __future__ import annotations

import numpy as np
import pytest
from test_threads import model, rows
from tract_cpu.native.sharing import FIRST, LEFT, TRIES, Sharing
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen


def runs(sharing: Sharing, alone: int, shared: int, count: int) -> list[bool]:
    """Whether each of so many runs was shared, which take these times."""
    found = list[bool]()
    for _ in range(count):
        found.append(sharing.begin())
        sharing.took(shared if found[-1] else alone)
    return found


@pytest.mark.parametrize(("alone", "shared"), [(100_000, 60_000), (60_000, 100_000), (100_000, 100_000), (0, 0)])
@pytest.mark.parametrize("times", [1, 1000])
def test_runs_are_done_in_the_way_that_takes_less_time_and_few_in_the_other(alone, shared, times) -> None:
    found = runs(Sharing(), times * alone, times * shared, 20_000)
    assert found[: FIRST + TRIES - 1] == [True] * (FIRST + TRIES - 1)
    assert found.count(shared > alone) <= (FIRST if shared > alone else 0) + 0.12 * len(found)
    taken = sum(shared if one else alone for one in found)
    assert taken <= 1.02 * len(found) * min(alone, shared) + FIRST * shared


@pytest.mark.parametrize("times", [[5_000_000, 9_000_000], [9_000_000, 5_000_000], [9_000_000, 5_000_000, 9_000_000]])
def test_where_another_way_becomes_the_faster_one_it_is_taken_soon(times) -> None:
    sharing = Sharing()
    for shared in times:
        found = runs(sharing, 7_000_000, shared, 600)
        assert found[400:].count(shared < 7_000_000) >= 190


def test_single_runs_that_were_held_up_change_nothing() -> None:
    sharing, random, found = Sharing(), np.random.default_rng(0), list[bool]()
    for _ in range(20_000):
        found.append(sharing.begin())
        held_up = 5_000_000 * int(random.random() < 0.05)
        sharing.took((60_000 if found[-1] else 100_000) + held_up)
    assert found.count(False) <= 0.02 * len(found)


def test_a_trial_waits_for_helpers_to_wake_up_but_not_for_ever() -> None:
    sharing = Sharing()
    runs(sharing, 100_000, 60_000, FIRST)
    found = list[bool]()
    while len(found) < 1000 and (not found or found[-1]):
        found.append(sharing.begin())
        sharing.took(100_000, helped=not found[-1])
    assert TRIES < found.count(True) - TRIES <= 200, "a fiftieth of a second"


def test_the_runs_of_a_trial_lay_out_no_memory(monkeypatch) -> None:
    plan, x, made = CpuPlan(model(), chosen(""), 2), rows(40), list[int]()
    new = plan.new_execution
    monkeypatch.setattr(plan, "new_execution", lambda *given: made.append(1) or new(*given))
    for _ in range(3 * FIRST):
        if plan.repeat([x]) is None:
            plan.spawn().run([x])
    assert len(made) == 2, "one for the short way, one for the long one"


def test_both_ways_give_the_same_results_on_the_short_way_and_on_the_long_one() -> None:
    plan, x = CpuPlan(model(), chosen(""), 2), rows(40)
    state, (wanted,) = plan.spawn(), CpuPlan(model(), chosen(""), 1).spawn().run([x])
    ways = list[bool]()
    for _ in range(3 * FIRST):
        found = state.repeat([x])
        ways.append(found is None)
        (result,) = state.run([x]) if found is None else found
        np.testing.assert_array_equal(result, wanted)
    assert sum(ways) >= 1 + 2 * TRIES, "the first one, and those of a trial"


def test_native_code_comes_back_when_both_ways_have_to_be_tried() -> None:
    plan, x = CpuPlan(model(), chosen(""), 2), rows(40)
    state = plan.spawn()
    state.run([x])
    (sharing,) = plan._sharing.values()
    sharing._memory[:], sharing._patience = (0, 3), 0  # alone, so that nobody has to be awake, or is waited for
    assert [state.repeat([x]) is not None for _ in range(4)] == [True, True, False, False]
    for _ in range(2 * TRIES):
        assert state.repeat([x]) is None
        state.run([x])
    assert sharing._now[LEFT] >= FIRST
    sharing._now[0] = 0
    assert state.repeat([x]) is not None


def test_sizes_are_tried_apart_and_states_learn_from_each_other() -> None:
    plan = CpuPlan(model(), chosen(""), 2)
    states = [plan.spawn() for _ in range(2)]
    for count in (100, 120):
        for state in states:
            state.run([rows(count)])
    assert len(plan._sharing) == 2
    assert states[0]._execution.sharing is states[1]._execution.sharing is plan._sharing[("M", 120),]
    for count in range(200, 280):
        plan.spawn().run([rows(count)])
    assert len(plan._sharing) <= 64


def test_with_one_thread_nothing_is_tried() -> None:
    plan, x = CpuPlan(model(), chosen(""), 1), rows(40)
    state = plan.spawn()
    state.run([x])
    assert all(state.repeat([x]) is not None for _ in range(3 * FIRST))
    assert not plan._sharing
