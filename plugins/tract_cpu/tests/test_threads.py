"""Threads: as many as there may be, the same results for any number of them, and many uses at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from ctypes import PYFUNCTYPE, py_object, pythonapi
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tract_cpu.binding import Bound
from tract_cpu.native import pool
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen

from tract_core.data import DatumType
from tract_core.errors import TractError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.einsum import EinSum


def model(rows: str = "M", layers: int = 2) -> TypedModel:
    """Products one after the other: two of them have enough work for several threads."""
    rng = np.random.default_rng(0)
    found = TypedModel()
    x = found.add_source("x", parse_typed_fact(f"{rows},200,f32", found.symbols))
    for number in range(layers):
        weights = found.add_const(f"w{number}", rng.standard_normal((200, 200)).astype("f4"))
        (x,) = found.wire_node(f"p{number}", EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F32), [x, weights])
        (x,) = found.wire_node(f"a{number}", Add(), [x, found.add_const(f"b{number}", np.ones((1, 1), "f4"))])
    found.set_outputs([x])
    return found


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, 200)).astype("f4")


@pytest.mark.parametrize("count", [1, 40, 113, 300])
def test_results_are_the_same_to_the_bit_for_any_number_of_threads(count: int) -> None:
    x = rows(count)
    (alone,) = CpuPlan(model(), chosen(""), 1).spawn().run([x])
    for threads in (2, 3, 7):
        (found,) = CpuPlan(model(), chosen(""), threads).spawn().run([x])
        np.testing.assert_array_equal(found.view("u4"), alone.view("u4"))


@pytest.mark.parametrize(("count", "layers", "threads"), [(40, 2, 2), (2, 40, 1), (10, 2, 1), (20, 40, 2)])
def test_threads_are_woken_for_much_work_in_few_steps(count: int, layers: int, threads: int) -> None:
    """To meet after each of many small steps takes longer than to do them."""
    state = CpuPlan(model(layers=layers), chosen(""), 2).spawn()
    state.run([rows(count)])
    assert state._execution.threads == threads


def test_many_threads_share_one_plan() -> None:
    plan = CpuPlan(model(), chosen(""), 2)
    inputs = [rows(30 + 5 * number) for number in range(8)]
    wanted = [CpuPlan(model(), chosen(""), 1).spawn().run([x])[0] for x in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        state = plan.spawn()
        runs = (state.run([inputs[number]])[0] for _ in range(20))
        wrong.extend(number for found in runs if not np.array_equal(found, wanted[number]))

    threads = [Thread(target=work, args=(number,)) for number in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_runs_what_its_parent_prepared() -> None:
    plan, x = CpuPlan(model(), chosen(""), 2), rows(100)
    (wanted,) = plan.spawn().run([x])
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(plan.spawn().run([x])[0], wanted) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also in a process that began in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_interrupts")
def test_who_is_interrupted_while_he_wakes_others_can_run_again() -> None:
    """Ctrl-C comes when a helper was told to wake up: nobody waits for anybody then."""
    interrupt: Any = PYFUNCTYPE(None, py_object)(("PyErr_SetInterrupt", pythonapi))
    alone, called = pool.Pool(), list[tuple[int, ...]]()

    def call(*arguments: int) -> None:
        called.append(arguments)

    alone._queues = [SimpleNamespace(put=interrupt)]
    with pytest.raises(KeyboardInterrupt):
        alone.run(2, call, (1,), (2,), helper)
    alone.run(2, call, (1,), (2,), helper)  # the helper was told already
    assert called[-1] == (1, alone.address, 2)


def helper(team: int, number: int) -> None:
    """One that does nothing."""


def test_a_run_waits_for_no_helper_that_does_not_come() -> None:
    """It is told to help, and never does: the run does all of its steps itself, and the results are the same."""
    plan, x = CpuPlan(model(), chosen(""), 3), rows(100)
    (wanted,) = CpuPlan(model(), chosen(""), 1).spawn().run([x])
    state = plan.spawn()
    plan._help = helper
    for _ in range(3):
        np.testing.assert_array_equal(state.run([x])[0], wanted)
    assert state._execution.threads == 3


@pytest.mark.parametrize("tasks", [0, 1, 2, 5, 64])
@pytest.mark.parametrize("threads", [2, 3, 4])
def test_a_step_has_as_many_parts_as_there_are_threads_and_tasks_where_that_is_worth_it(threads, tasks) -> None:
    def parts(work: int, times: int) -> list[int] | None:
        of_steps = [np.array([one]) for one in (tasks, work, times, work)]
        found = Bound(np.zeros(0), [0], *of_steps, scratch=0, fuel_of_loops=0).parts(threads)
        return None if found is None else found.tolist()

    assert parts(1 << 24, 1) == ([min(tasks, threads)] if tasks > 1 else None)
    assert parts(1 << 16, 1000) == ([min(tasks, threads)] if tasks > 1 else None)
    assert parts(1 << 16, 1) is None, "nobody is woken for so little"
    assert parts(1 << 12, 1 << 20) is None, "to offer a step takes longer"


def test_where_the_system_allows_no_more_threads_there_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    plan, x = CpuPlan(model(), chosen(""), 3), rows(100)
    (result,) = CpuPlan(model(), chosen(""), 1).spawn().run([x])
    monkeypatch.setattr(pool, "_POOL", [pool.Pool()])
    monkeypatch.setattr(Thread, "start", start)
    np.testing.assert_array_equal(plan.spawn().run([x])[0], result)


def test_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACT_THREADS", "3")
    assert pool.threads_here() == 3


@pytest.mark.parametrize("named", ["0", "-1", "two", "1.5"])
def test_what_is_no_number_of_threads_is_refused(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("TRACT_THREADS", named)
    with pytest.raises(TractError, match=rf"TRACT_THREADS is '{named}', wanted a number of threads, 1 or more"):
        pool.threads_here()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no affinities")
def test_only_processors_that_may_be_used_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACT_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert pool.threads_here() == 1


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "max 100000"}, 1 << 20),
        ({"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 1 << 20),
        ({}, 1 << 20),
        ({"cpu.max": "nonsense"}, 1 << 20),
    ],
)
def test_the_share_of_a_container_counts(tmp_path: Path, files: dict[str, str], count: int) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert pool.quota(tmp_path) == count
