"""Who runs within a budget of time, by a clock that only the policies move: the rule, told a second time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
from clocked import Broken, Echo, SimulatedClock, moving, serial, told
from tract_inferers import BrainId, BrainsFailed, OrphanedData, Runtime
from tract_inferers.runtime.threads import assigned

from tract_core.errors import InputError


def measured(*seconds: float) -> tuple[Runtime, SimulatedClock, list[int]]:
    """A runtime with brains that take so long, known to it, and the list of those that run from now on."""
    clock, log = SimulatedClock(), list[int]()
    runtime = Runtime(clock=clock)
    for number, one in enumerate(seconds):
        inferer = Echo(moving(clock, one), number)
        runtime.add_inferer(inferer)
        inferer.log = log
    for _ in range(2):
        push_all(runtime)
        runtime.run()
    log.clear()
    return runtime, clock, log


def push_all(runtime: Runtime) -> None:
    """An observation for each brain that has none."""
    for brain in runtime.brains():
        if not runtime.pending(brain):
            runtime.push(brain, 1, serial(brain))


@pytest.mark.parametrize("budget", [0, -1.5, 0.0, float("-inf"), timedelta(0), timedelta(seconds=-3)])
@pytest.mark.parametrize("run", ["run_for", "run_for_threaded"])
def test_without_time_one_brain_runs_each_in_its_turn(budget: object, run: str) -> None:
    runtime, _, log = measured(1, 1, 1)
    for _ in range(5):
        push_all(runtime)
        assert len(getattr(runtime, run)(budget)) == 1
    assert log == [0, 1, 2, 0, 1]
    runtime.close()


@pytest.mark.parametrize("run", ["run_for", "run_for_threaded"])
def test_without_time_one_brain_runs_also_of_those_that_were_never_measured(run: str) -> None:
    with Runtime(threads=2, clock=SimulatedClock()) as runtime:
        brains = [runtime.add_inferer(Echo()) for _ in range(3)]
        push_all(runtime)
        assert list(getattr(runtime, run)(0)) == brains[:1]


def test_what_fits_runs_and_goes_to_the_end() -> None:
    runtime, clock, log = measured(3, 4, 2)
    push_all(runtime)
    start = clock.now
    assert list(runtime.run_for(7.5)) == [0, 1]
    assert clock.now - start == 7
    push_all(runtime)
    assert list(runtime.run_for(5.0)) == [2, 0], "exactly what is left fits"
    assert list(runtime.run_for(timedelta(seconds=100))) == [1]
    push_all(runtime)
    assert list(runtime.run_for(float("inf"))) == [2, 0, 1]
    assert log == [0, 1, 2, 0, 1, 2, 0, 1]
    assert runtime.run_for(9) == {}


def test_what_is_passed_over_stays_in_front() -> None:
    runtime, _, log = measured(1, 10, 1)
    push_all(runtime)
    assert list(runtime.run_for(3)) == [0, 2], "the long one does not fit"
    push_all(runtime)
    assert list(runtime.run_for(3)) == [1], "it is the first now, and runs"
    assert list(runtime.run_for(3)) == [0, 2]
    assert log == [0, 2, 1, 0, 2]


def test_a_brain_without_rows_keeps_its_place() -> None:
    runtime, _, log = measured(1, 1, 1)
    for brain in (1, 2):
        runtime.push(BrainId(brain), 1, serial(0))
    runtime.run_for(10)
    push_all(runtime)
    runtime.run_for(10)
    assert log == [1, 2, 0, 1, 2]


def test_a_new_brain_is_the_last_and_fits_as_long_as_it_was_not_measured() -> None:
    runtime, clock, _ = measured(1, 1)
    new = runtime.add_inferer(Echo(moving(clock, 50)))
    push_all(runtime)
    assert list(runtime.run_for(2.5)) == [0, 1, new]
    push_all(runtime)
    assert list(runtime.run_for(2.5)) == [0, 1, new], "what it took then was warm-up"
    push_all(runtime)
    assert list(runtime.run_for(2.5)) == [0, 1]


def test_run_counts_as_a_turn_and_infer_single_does_not() -> None:
    runtime, _, log = measured(1, 1)
    runtime.push(BrainId(0), 1, serial(0))
    runtime.run()
    push_all(runtime)
    runtime.infer_single(BrainId(1), serial(0))
    runtime.run_for(0)
    assert log == [0, 1, 1]


def test_what_fails_goes_to_the_end_and_costs_the_others_nothing() -> None:
    clock = SimulatedClock()
    runtime = Runtime(clock=clock)
    brains = [runtime.add_inferer(kind(moving(clock, 1))) for kind in (Broken, Echo, Echo)]
    push_all(runtime)
    with pytest.raises(BrainsFailed, match=r"1 of 3 brains failed:\n  brain 0: RunError: it is broken") as failed:
        runtime.run_for(100)
    assert told(failed.value.responses) == {1: {1: 1}, 2: {1: 2}}
    assert list(failed.value.errors) == brains[:1]
    assert list(runtime.pending(brains[0])) == [1]
    push_all(runtime)
    with pytest.raises(BrainsFailed):
        runtime.run_for(0)
    assert list(runtime.run_for(0)) == [1], "the one that failed is behind it"


@pytest.mark.parametrize("budget", [float("nan"), "1", None, True, 1j, np.float32("nan")])
@pytest.mark.parametrize("run", ["run_for", "run_for_threaded"])
def test_what_is_no_budget_is_refused(budget: object, run: str) -> None:
    runtime, _, log = measured(1)
    push_all(runtime)
    with pytest.raises(InputError, match=r"budget: is .*, wanted seconds, or a timedelta"):
        getattr(runtime, run)(budget)
    assert not log


@pytest.mark.parametrize("budget", [1, np.float32(1), np.int64(1)])
def test_numbers_of_numpy_are_budgets(budget: object) -> None:
    runtime, _, _ = measured(1, 1)
    push_all(runtime)
    assert list(runtime.run_for(budget)) == [0]


class Schedule:
    """Random pushes, runs, errors, new brains and old ones that go, with what must become of them told beside."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.clock = SimulatedClock()
        self.runtime = Runtime(clock=self.clock)
        self.queue: list[BrainId] = []
        self.waiting: dict[BrainId, dict[int, int]] = {}
        self.turns: dict[BrainId, int] = {}  # calls in which a brain with rows must have run
        self.log: list[tuple[BrainId, float, float]] = []  # who ran, from when to when
        self.failing: set[BrainId] = set()
        self.serials = 0

    def play(self, steps: int) -> None:
        seldom = [self.add, self.remove, self.replace, self.end, self.single, self.run]
        acts = [*seldom, *[self.push, self.run_for] * 4]
        self.add()
        for _ in range(steps):
            self.draw.choice(acts if self.queue else [self.add])()
        self.failing.clear()
        while any(self.waiting.values()):
            self.run_for()
        assert told(self.runtime.run()) == {}

    def cost(self, number: Callable[[], BrainId]) -> Callable[[int], None]:
        fixed, per_row = self.draw.uniform(0, 0.1), self.draw.uniform(0, 0.01)

        def run(rows: int) -> None:
            brain, start = number(), self.clock.now
            spike = self.draw.choice([1] * 20 + [30])
            self.clock.now += (fixed + per_row * rows) * self.draw.uniform(0.8, 1.2) * spike
            self.log.append((brain, start, self.clock.now))
            if brain in self.failing:
                raise ArithmeticError(f"brain {brain} fails")

        return run

    def add(self) -> None:
        brain = self.runtime.add_inferer(Echo(self.cost(lambda: brain)))
        self.queue.append(brain)
        self.waiting[brain] = {}

    def remove(self) -> None:
        brain = self.draw.choice(self.queue)
        self.queue.remove(brain)
        waited = self.waiting.pop(brain)
        self.turns.pop(brain, None)
        if not waited:
            self.runtime.remove_inferer(brain)
            return
        with pytest.raises(OrphanedData) as orphaned:
            self.runtime.remove_inferer(brain)
        orphans = orphaned.value.orphans
        assert {agent: int(one["serial"]) for agent, one in orphans[brain].items()} == waited

    def replace(self) -> None:
        brain = self.draw.choice(self.queue)
        self.runtime.replace_inferer(brain, Echo(self.cost(lambda: brain)))

    def push(self) -> None:
        brain = self.draw.choice(self.queue)
        agents = sorted(set(self.draw.choices(range(1000), k=self.draw.randint(1, 30))) - set(self.waiting[brain]))
        serials = np.arange(self.serials, self.serials + len(agents))
        self.serials += len(agents)
        self.runtime.push_many(brain, agents, {"serial": serials})
        self.turns.setdefault(brain, len(self.queue))
        self.waiting[brain] |= dict(zip(agents, serials.tolist(), strict=True))

    def end(self) -> None:
        brain = self.draw.choice(self.queue)
        if waiting := self.waiting[brain]:
            agent = self.draw.choice(sorted(waiting))
            del waiting[agent]
            self.runtime.end_agent(brain, agent)
        if not waiting:
            self.turns.pop(brain, None)

    def single(self) -> None:
        self.failing.clear()
        self.serials += 1
        assert self.runtime.infer_single(self.draw.choice(self.queue), serial(self.serials))["echo"] == self.serials

    def run(self) -> None:
        expected = [brain for brain in sorted(self.queue) if self.waiting[brain]]
        self.failing = {brain for brain in self.queue if self.draw.random() < 0.05}
        self.called(self.runtime.run)
        assert [brain for brain, _, _ in self.log] == expected
        self.queue = [brain for brain in self.queue if brain not in expected] + expected

    def run_for(self) -> None:
        budget = self.draw.choice([-1.0, 0.0, self.draw.uniform(0, 0.2), self.draw.uniform(0, 0.2), 3.0])
        lines = {brain: self.runtime.stats(brain) for brain in self.queue}
        rows = {brain: len(waiting) for brain, waiting in self.waiting.items()}
        self.failing = {brain for brain in self.queue if self.draw.random() < 0.05}
        until = self.clock.now + budget
        self.called(lambda: self.runtime.run_for(budget))
        ran = [brain for brain, _, _ in self.log]
        ends = iter([end for _, _, end in self.log])
        now, chosen = until - budget, list[BrainId]()
        for brain in self.queue:
            expected = lines[brain].fixed + lines[brain].per_row * rows[brain]
            if rows[brain] and (not chosen or (until - now > 0 and expected <= until - now)):
                chosen.append(brain)
                now = next(ends)
        assert ran == chosen
        assert len(ran) <= 1 or self.log[-1][1] < until, "a call is too long by one run at most"
        self.queue = [brain for brain in self.queue if brain not in ran] + ran

    def called(self, run: Callable[[], object]) -> None:
        """Call a method that runs brains: what comes back is what waited, of those that did not fail."""
        self.log.clear()
        failed: set[BrainId] = set()
        try:
            responses = run()
        except BrainsFailed as error:
            responses, failed = error.responses, set(error.errors)
        ran = [brain for brain, _, _ in self.log]
        assert failed == self.failing & set(ran)
        assert told(responses) == {brain: self.waiting[brain] for brain in ran if brain not in failed}
        for brain in ran:
            self.turns.pop(brain, None)
            if brain not in failed:
                self.waiting[brain] = {}
        self.turns = {brain: turns - 1 for brain, turns in self.turns.items()}
        assert all(self.turns.values()), "one has not run for as many calls as there are brains"
        self.turns |= dict.fromkeys(failed, len(self.queue))


@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_random_schedules(part: int) -> None:
    for seed in range(1000 * part, 1000 * (part + 1)):
        try:
            Schedule(seed).play(12)
        except BaseException as error:
            error.add_note(f"Schedule({seed})")
            raise


def test_long_random_schedules() -> None:
    for seed in range(20):
        Schedule(seed).play(1000)


@pytest.mark.parametrize("seed", range(500))
def test_each_thread_has_what_fits(seed: int) -> None:
    draw = random.Random(seed)
    expected = [(number, draw.choice([0.0, draw.uniform(0, 2)])) for number in range(draw.randint(0, 12))]
    budget, threads = draw.choice([-1.0, 0.0, 1.0, draw.uniform(0, 5)]), draw.randint(1, 4)
    lines = assigned(expected, budget, threads)
    loads = [0.0] * threads
    for number, seconds in expected:
        least = min(range(threads), key=lambda thread: (loads[thread], sum(one < number for one in lines[thread])))
        fits = loads[least] < budget and loads[least] + seconds <= budget
        runs = fits or number == 0
        assert [thread for thread, line in enumerate(lines) if number in line] == [least] * runs
        loads[least] += seconds * runs
    assert all(line == sorted(line) for line in lines)


@pytest.mark.parametrize(("run", "threads"), [("run_for", 1), ("run_for_threaded", 2)])
def test_by_the_real_clock_no_more_run_than_fit(run: str, threads: int) -> None:
    with Runtime(threads=threads) as runtime:
        for _ in range(6):
            runtime.add_inferer(Echo(lambda _: time.sleep(0.05)))
        for _ in range(2):
            push_all(runtime)
            runtime.run_threaded()
        for budget, most in [(0.0, 1), (0.08, threads), (0.13, 2 * threads), (1000.0, 6)]:
            push_all(runtime)
            assert 1 <= len(getattr(runtime, run)(budget)) <= most
        push_all(runtime)
        assert len(getattr(runtime, run)(1000.0)) == 6
