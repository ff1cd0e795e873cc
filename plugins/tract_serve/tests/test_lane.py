"""How requests of one model wait, run and are joined."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np
import pytest
from tract_serve.batching.joining import RowsJoined
from tract_serve.batching.lane import QUICK_S, Lane
from tract_serve.batching.policy import WaitingPolicy
from tract_serve.batching.rows import RowAxes
from tract_serve.batching.statistics import Statistics
from tract_serve.errors import Busy, TooLate

from tract_core.errors import RunError

Array = np.ndarray[Any, Any]
ROWS = RowsJoined(RowAxes("N", (0,), (0,)))


class ServedModel:
    """Doubles its input. ``gate``: opened, it runs; ``runs``: the number of rows of each run, in order."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.runs: list[int] = []
        self.threads: set[str] = set()
        if is_open:
            self.gate.set()

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        self.begun.set()
        self.threads.add(threading.current_thread().name)
        self.runs.append(len(inputs[0]))
        assert self.gate.wait(20)
        if np.any(inputs[0] < 0):
            raise RunError("a number below 0")
        return [inputs[0] * 2]


def lane(model: ServedModel, *, joins: bool = True, **policy: Any) -> Lane:
    return Lane("double", model, ROWS if joins else None, WaitingPolicy(**policy), Statistics())


def row(value: float, count: int = 1) -> list[Array]:
    return [np.full((count, 3), value, np.float32)]


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(work(), 30))


async def begun(model: ServedModel) -> None:
    while not model.begun.is_set():
        await asyncio.sleep(0.001)


async def queued(found: Lane, count: int) -> None:
    while found.waiting != count:
        await asyncio.sleep(0.001)


def test_what_comes_while_a_run_is_under_way_is_one_run() -> None:
    model = ServedModel(is_open=False)

    async def work() -> None:
        found = lane(model)
        first = asyncio.ensure_future(found.infer(row(0)))
        await begun(model)
        others = [asyncio.ensure_future(found.infer(row(value, value))) for value in (1, 2, 3)]
        await queued(found, 3)
        model.gate.set()
        np.testing.assert_array_equal((await first)[0], row(0)[0])
        for value, other in zip((1, 2, 3), others, strict=True):
            np.testing.assert_array_equal((await other)[0], row(2 * value, value)[0])

    run(work)
    assert model.runs == [1, 6]


def test_no_run_has_more_rows_than_the_policy_allows() -> None:
    model = ServedModel(is_open=False)

    async def work() -> None:
        found = lane(model, most_rows=4)
        first = asyncio.ensure_future(found.infer(row(0)))
        await begun(model)
        others = [asyncio.ensure_future(found.infer(row(1, count))) for count in (3, 2, 1, 7)]
        await queued(found, 4)
        model.gate.set()
        await asyncio.gather(first, *others)

    run(work)
    assert sorted(model.runs) == [1, 2, 4, 7]  # 3 and 1 together; 7 is a request, which nobody cuts


@pytest.mark.parametrize(("joins", "shape"), [(False, (1, 3)), (True, (1, 4)), (True, (0, 3))])
def test_requests_that_do_not_go_together_run_alone(joins: bool, shape: tuple[int, ...]) -> None:
    model = ServedModel(is_open=False)

    async def work() -> None:
        found = lane(model, joins=joins)
        first = asyncio.ensure_future(found.infer(row(0)))
        await begun(model)
        others = [found.infer([np.ones(shape, np.float32)]), found.infer(row(1))]
        tasks = [asyncio.ensure_future(one) for one in others]
        await queued(found, 2)
        model.gate.set()
        answers = await asyncio.gather(first, *tasks)
        assert answers[1][0].shape == shape

    run(work)
    assert len(model.runs) == 3


def test_a_request_that_fails_harms_none_that_it_was_joined_with() -> None:
    model = ServedModel(is_open=False)

    async def work() -> None:
        found = lane(model)
        first = asyncio.ensure_future(found.infer(row(0)))
        await begun(model)
        others = [asyncio.ensure_future(found.infer(row(value))) for value in (1, -1, 2)]
        await queued(found, 3)
        model.gate.set()
        answers = await asyncio.gather(first, *others, return_exceptions=True)
        assert isinstance(answers[2], RunError)
        np.testing.assert_array_equal(answers[1][0], row(2)[0])
        np.testing.assert_array_equal(answers[3][0], row(4)[0])

    run(work)


def test_runs_that_are_quick_stay_in_the_thread_that_asks() -> None:
    model = ServedModel()

    async def work() -> None:
        found = lane(model)
        found._took[((1, 3),)] = QUICK_S / 2  # as it is once that was measured
        await found.infer(row(1))

    run(work)
    assert model.threads == {threading.current_thread().name}


def test_a_shape_that_is_not_known_runs_elsewhere() -> None:
    model = ServedModel()

    async def work() -> None:
        await lane(model).infer(row(1))

    run(work)
    assert model.threads == {"tract-double_0"}


def test_too_many_that_wait_are_refused() -> None:
    model = ServedModel(is_open=False)

    async def work() -> None:
        found = lane(model, most_waiting=2)
        tasks = [asyncio.ensure_future(found.infer(row(0)))]
        await begun(model)
        tasks += [asyncio.ensure_future(found.infer(row(1))) for _ in range(2)]
        await queued(found, 2)
        with pytest.raises(Busy, match="2 requests wait for it, and more may not") as caught:
            await found.infer(row(2))
        assert caught.value.status == 503
        assert caught.value.hint == "ask again later"
        model.gate.set()
        await asyncio.gather(*tasks)

    run(work)


def test_who_waits_too_long_is_told_so_and_not_run() -> None:
    model = ServedModel(is_open=False)

    async def work() -> None:
        found = lane(model)
        first = asyncio.ensure_future(found.infer(row(0)))
        await begun(model)
        with pytest.raises(TooLate, match=r"waited for 0\.05 seconds, and was not run"):
            await found.infer(row(5), timeout_s=0.05)
        assert found.waiting == 0
        model.gate.set()
        await first

    run(work)
    assert model.runs == [1]


def test_who_leaves_is_not_run() -> None:
    model = ServedModel(is_open=False)

    async def work() -> Statistics:
        told = Statistics()
        found = Lane("double", model, ROWS, WaitingPolicy(), told)
        first = asyncio.ensure_future(found.infer(row(0)))
        await begun(model)
        leaves, stays = (asyncio.ensure_future(found.infer(row(value))) for value in (1, 2))
        await queued(found, 2)
        leaves.cancel()
        await queued(found, 1)
        model.gate.set()
        await asyncio.gather(first, stays)
        return told

    told = run(work)
    assert model.runs == [1, 1]
    assert told.cancelled == 1


def test_priorities_go_first_and_others_are_the_usual_one() -> None:
    model = ServedModel(is_open=False)
    order: list[int] = []

    async def work() -> None:
        found = lane(model, joins=False, levels=3, priority=2)
        first = asyncio.ensure_future(found.infer(row(0)))
        await begun(model)

        async def ask(priority: int) -> None:
            await found.infer(row(1), priority)
            order.append(priority)

        tasks = [asyncio.ensure_future(ask(priority)) for priority in (3, 0, 1, 4)]
        await queued(found, 4)
        model.gate.set()
        await asyncio.gather(first, *tasks)
        await lane(model).infer(row(1), 1)

    run(work)
    assert order == [1, 0, 4, 3]


def test_nobody_who_is_alone_waits_for_more() -> None:
    model = ServedModel()

    async def work() -> None:
        found = lane(model, delay_s=10.0)
        for _ in range(3):
            await asyncio.wait_for(found.infer(row(1)), 5)

    run(work)
    assert model.runs == [1, 1, 1]


def test_where_several_ask_at_once_a_run_waits_for_more() -> None:
    model = ServedModel(is_open=False)

    async def work() -> None:
        found = lane(model, delay_s=0.3, most_rows=4)
        tasks = [asyncio.ensure_future(found.infer(row(0)))]
        await begun(model)
        tasks += [asyncio.ensure_future(found.infer(row(1))) for _ in range(2)]
        await queued(found, 2)
        model.gate.set()
        await asyncio.gather(*tasks)  # runs of 1 and of 2: now there is more than one client
        tasks = [asyncio.ensure_future(found.infer(row(1)))]
        await asyncio.sleep(0.01)
        tasks += [asyncio.ensure_future(found.infer(row(1))) for _ in range(3)]  # now it is full
        await asyncio.gather(*tasks)
        await found.infer(row(1))  # alone, until the delay is over

    run(work)
    assert model.runs == [1, 2, 4, 1]


def test_instances_run_at_the_same_time() -> None:
    model = ServedModel(is_open=False)

    async def work() -> None:
        found = lane(model, joins=False, instances=2)
        tasks = [asyncio.ensure_future(found.infer(row(value))) for value in range(3)]
        while len(model.runs) != 2:
            await asyncio.sleep(0.001)
        assert (found.running, found.waiting) == (2, 1)
        model.gate.set()
        await asyncio.gather(*tasks)

    run(work)


def test_what_is_counted() -> None:
    model = ServedModel(is_open=False)
    told = Statistics()

    async def work() -> None:
        found = Lane("double", model, ROWS, WaitingPolicy(), told)
        tasks = [asyncio.ensure_future(found.infer(row(0)))]
        await begun(model)
        tasks += [asyncio.ensure_future(found.infer(row(1, 2))) for _ in range(2)]
        await queued(found, 2)
        model.gate.set()
        await asyncio.gather(*tasks)

    run(work)
    assert (told.rows, told.runs) == (5, 2)
    assert sorted(told.batches) == [1, 4]
    assert told.queue.count == 3
    assert told.compute_infer.count == 3
