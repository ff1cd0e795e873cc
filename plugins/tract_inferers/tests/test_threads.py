"""Many threads and one runtime: who waits for whom, and that nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from clocked import Echo, serial, told
from tract_inferers import BrainId, BrainsFailed, OrphanedData, Runtime, UnknownBrain

from tract_core.errors import InputError

PATIENCE = 30.0
"""Seconds after which a test gives up on what should happen at once."""


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Threads for callers, beside those of the runtime."""
    with ThreadPoolExecutor(8) as pool:
        yield pool


class Held(Echo):
    """Runs until it is let go. ``begun``: set while it runs."""

    def __init__(self) -> None:
        super().__init__(self.hold)
        self.begun, self.go = threading.Event(), threading.Event()

    def hold(self, _: int) -> None:
        self.begun.set()
        assert self.go.wait(PATIENCE)


def held(runtime: Runtime) -> tuple[BrainId, Held]:
    """A brain with one row that waits, and its policy."""
    inferer = Held()
    brain = runtime.add_inferer(inferer)
    runtime.push(brain, 1, serial(10))
    return brain, inferer


USES: list[Callable[[Runtime, BrainId], object]] = [
    lambda runtime, brain: runtime.push(brain, 2, serial(20)),
    lambda runtime, brain: runtime.push_many(brain, [], {"serial": serial(0)["serial"][None][:0]}),
    lambda runtime, brain: runtime.infer_single(brain, serial(1)),
    lambda runtime, brain: runtime.begin_agent(brain, 1),
    lambda runtime, brain: runtime.end_agent(brain, 1),
    lambda runtime, brain: runtime.pending(brain),
    lambda runtime, brain: runtime.replace_inferer(brain, Echo()),
    lambda runtime, brain: runtime.remove_inferer(brain),
    lambda runtime, _: runtime.clear(),
]


@pytest.mark.parametrize("use", USES)
def test_a_brain_that_runs_is_waited_for(
    use: Callable[[Runtime, BrainId], object], threads: ThreadPoolExecutor
) -> None:
    runtime = Runtime()
    brain, inferer = held(runtime)
    running = threads.submit(runtime.run)
    assert inferer.begun.wait(PATIENCE)
    waiting = threads.submit(use, runtime, brain)
    with pytest.raises(TimeoutError):
        waiting.result(0.02)
    inferer.go.set()
    assert told(running.result(PATIENCE)) == {0: {1: 10}}
    waiting.result(PATIENCE)


def test_other_brains_and_numbers_are_not_waited_for(threads: ThreadPoolExecutor) -> None:
    runtime = Runtime()
    brain, inferer = held(runtime)
    other = runtime.add_inferer(Echo())
    running = threads.submit(runtime.run)
    assert inferer.begun.wait(PATIENCE)
    runtime.push(other, 1, serial(5))
    assert runtime.stats(brain).pending == 1
    assert runtime.infer_single(other, serial(3))["echo"] == 3
    assert [slot.name for slot in runtime.input_shapes(brain)] == ["serial"]
    for run in (lambda: runtime.run_for(0), runtime.run, runtime.run_threaded):
        assert told(run()) == {other: {1: 5}}, "the one that runs is passed over, and is not the first"
        runtime.push(other, 1, serial(5))
    inferer.go.set()
    assert brain in running.result(PATIENCE)


@pytest.mark.parametrize("run", ["run_threaded", "run_for_threaded"])
def test_brains_run_side_by_side(run: str) -> None:
    meeting = threading.Barrier(3)
    with Runtime(threads=3) as runtime:
        for number in range(3):
            brain = runtime.add_inferer(Echo(lambda _: meeting.wait(PATIENCE)))
            runtime.push(brain, 1, serial(number))
        found = getattr(runtime, run)(*[1000.0] * ("for" in run))
        assert told(found) == {0: {1: 0}, 1: {1: 1}, 2: {1: 2}}


def test_a_brain_runs_once_at_a_time_whoever_asks(threads: ThreadPoolExecutor) -> None:
    inside: list[int] = []
    most: list[int] = []

    def look(_: int) -> None:
        inside.append(1)
        most.append(len(inside))
        threading.Event().wait(0.001)
        inside.pop()

    runtime = Runtime(threads=2)
    brain = runtime.add_inferer(Echo(look))

    def use(agent: int) -> None:
        for step in range(10):
            runtime.push(brain, agent, serial(step))
            while agent in runtime.pending(brain):
                runtime.run()
            runtime.infer_single(brain, serial(step), agent)

    for one in [threads.submit(use, agent) for agent in range(4)]:
        one.result(PATIENCE)
    assert set(most) == {1}


def test_a_policy_asks_another_brain_while_it_runs() -> None:
    runtime = Runtime()
    helper = runtime.add_inferer(Echo())
    answers: list[Any] = []

    def ask(_: int) -> None:
        answers.append(int(runtime.infer_single(helper, serial(8))["echo"]))
        runtime.push(helper, 1, serial(9))
        answers.append(told(runtime.run()))

    asker = runtime.add_inferer(Echo(ask))
    runtime.push(asker, 1, serial(3))
    assert told(runtime.run()) == {asker: {1: 3}}
    assert answers == [8, {helper: {1: 9}}]


ASKS: list[Callable[[Runtime], object]] = [
    lambda runtime: runtime.push(BrainId(0), 2, serial(1)),
    lambda runtime: runtime.infer_single(BrainId(0), serial(1)),
    lambda runtime: runtime.remove_inferer(BrainId(0)),
    lambda runtime: runtime.replace_inferer(BrainId(0), Echo()),
]


@pytest.mark.parametrize("ask", ASKS)
def test_a_policy_that_asks_for_itself_is_refused(ask: Callable[[Runtime], object]) -> None:
    runtime = Runtime()
    runtime.push(runtime.add_inferer(Echo(lambda _: ask(runtime))), 1, serial(1))
    with pytest.raises(BrainsFailed, match="brain 0: InputError: brain 0: it is running, and waits for this") as failed:
        runtime.run()
    assert isinstance(failed.value.errors[0], InputError)
    assert list(runtime.pending(0)) == [1], "as it was"


def test_a_policy_clears_no_runtime() -> None:
    runtime = Runtime()
    brains = [runtime.add_inferer(Echo(lambda _: runtime.clear())), runtime.add_inferer(Echo())]
    runtime.push(brains[0], 1, serial(1))
    with pytest.raises(BrainsFailed, match="clear: a brain is running in this thread"):
        runtime.run()
    assert runtime.brains() == brains


@pytest.mark.parametrize("size", [2, 5])
def test_policies_that_ask_each_other_in_a_circle_get_an_error_and_wait_not_for_ever(size: int) -> None:
    meeting = threading.Barrier(size)
    met = threading.local()

    with Runtime(threads=size) as runtime:

        def asking(other: int) -> Callable[[int], None]:
            def ask(_: int) -> None:
                if not getattr(met, "before", False):  # in each thread, once
                    met.before = True
                    meeting.wait(PATIENCE)
                runtime.infer_single(BrainId(other), serial(0))

            return ask

        for number in range(size):
            brain = runtime.add_inferer(Echo(asking((number + 1) % size)))
            runtime.push(brain, 1, serial(number))
        with pytest.raises(BrainsFailed, match="waits for this call") as failed:
            runtime.run_threaded()
        assert set(failed.value.errors) | set(failed.value.responses) == set(range(size))


def test_a_wait_that_is_no_circle_is_no_error(threads: ThreadPoolExecutor) -> None:
    runtime = Runtime()
    last, inferer = held(runtime)
    chain = [last]
    for _ in range(3):
        chain.append(runtime.add_inferer(Echo(lambda _, before=chain[-1]: runtime.infer_single(before, serial(0)))))
    running = threads.submit(runtime.run)
    assert inferer.begun.wait(PATIENCE)
    asking = [threads.submit(runtime.infer_single, brain, serial(4)) for brain in chain[1:] * 2]
    inferer.go.set()
    assert [int(one.result(PATIENCE)["echo"]) for one in asking] == [4] * 6
    assert told(running.result(PATIENCE)) == {last: {1: 10}}


@pytest.mark.parametrize("run", ["run_threaded", "run_for_threaded"])
def test_a_policy_that_asks_for_threads_runs_what_it_asks_for_itself(run: str) -> None:
    with Runtime(threads=1) as runtime:
        helpers = [runtime.add_inferer(Echo()) for _ in range(2)]
        found: list[Any] = []

        def ask(_: int) -> None:
            for helper in helpers:
                runtime.push(helper, 1, serial(helper))
            found.append(told(getattr(runtime, run)(*[1000.0] * ("for" in run))))

        asker, other = runtime.add_inferer(Echo(ask)), runtime.add_inferer(Echo())
        for brain in (asker, other):
            runtime.push(brain, 1, serial(7))
        assert told(runtime.run_threaded()).keys() <= {asker, other}
        assert found[0].items() >= {0: {1: 0}, 1: {1: 1}}.items()


def test_a_brain_that_is_removed_while_others_wait_for_it_is_unknown_to_them(threads: ThreadPoolExecutor) -> None:
    runtime = Runtime()
    brain, inferer = held(runtime)
    running = threads.submit(runtime.run)
    assert inferer.begun.wait(PATIENCE)
    uses = [threads.submit(runtime.push, brain, agent, serial(agent)) for agent in range(5, 8)]
    removing = threads.submit(runtime.remove_inferer, brain)
    inferer.go.set()
    assert told(running.result(PATIENCE)) == {0: {1: 10}}
    pushed = [agent for agent, one in enumerate(uses, 5) if not isinstance(one.exception(PATIENCE), UnknownBrain)]
    gone = removing.exception(PATIENCE)
    assert sorted(gone.orphans[brain] if isinstance(gone, OrphanedData) else []) == pushed
    assert runtime.brains() == []


def test_a_brain_that_is_removed_after_it_was_found_is_unknown() -> None:
    runtime = Runtime()
    brain = runtime.add_inferer(Echo())
    found = runtime._brain(brain)
    runtime.remove_inferer(brain)
    with pytest.raises(UnknownBrain, match="there is no brain 0 any longer"), found:
        pass
    runtime.push(runtime.add_inferer(Echo()), 1, serial(2))
    assert told(runtime.run()) == {1: {1: 2}}


def names() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("brains")]


def test_threads_are_started_when_they_are_needed_and_end() -> None:
    before = set(names())
    runtime = Runtime(threads=2)
    brains = [runtime.add_inferer(Echo()) for _ in range(2)]
    for times in range(2):
        runtime.push(brains[0], 1, serial(times))
        runtime.run_threaded()
        assert set(names()) == before, "one brain needs none"
        for brain in brains:
            runtime.push(brain, 1, serial(times))
        assert len(runtime.run_threaded()) == 2
        assert 1 <= len(set(names()) - before) <= 2
        runtime.close()
        runtime.close()
        assert set(names()) == before
    with runtime as same:
        assert same is runtime


def test_all_cores_that_the_process_may_use_are_used() -> None:
    from tract_inferers.runtime.threads import checked_threads, usable_cores

    assert checked_threads(None) == usable_cores() >= 1
    assert checked_threads(3) == 3
