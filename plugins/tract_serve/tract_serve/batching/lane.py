"""The requests of one model: those that are quick run where they come, the others wait, and run together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from time import perf_counter
from typing import Any, Final

import numpy as np

from tract_serve.batching.joining import Joining
from tract_serve.batching.policy import WaitingPolicy
from tract_serve.batching.statistics import Statistics
from tract_serve.errors import Busy, TooLate

Array = np.ndarray[Any, Any]
Run = Callable[[Sequence[Array]], list[Array]]

QUICK_S: Final = 100e-6
"""A run that takes less goes on in the thread that answers clients: to another one and back takes as long."""

SLOW_S: Final = 0.01
"""A run that took so long is believed at once to take that; what is less may be the doing of a busy machine."""

_SHAPES: Final = 256
"""Of how many shapes it is remembered how long they take."""


@dataclass(slots=True, order=True)
class WaitingRequest:
    """A request that waits. ``priority``, ``number``: 1 before 2, and then in the order in which they came."""

    priority: int
    number: int
    inputs: Sequence[Array] = field(compare=False)
    key: Hashable = field(compare=False)
    result: asyncio.Future[list[Array]] = field(compare=False)
    since: float = field(compare=False)


class Lane:
    """Requests of one model. Used by the thread of one event loop; runs are in threads of their own.

    A request is run at once where nothing runs. What comes meanwhile waits, and is run together then: whoever comes
    alone waits for nobody.
    """

    def __init__(self, name: str, run: Run, joining: Joining | None, policy: WaitingPolicy, told: Statistics) -> None:
        """``run``: one run of the model, inputs and outputs in order. ``joining``: ``None`` where none are joined."""
        self._name, self._run, self._joining, self._policy, self._told = name, run, joining, policy, told
        self._waiting: list[WaitingRequest] = []
        self._alive = 0
        self._running = 0
        self._numbers = count()
        self._took: dict[Hashable, float] = {}
        self._mean = 0.0
        self._was_joined = False
        self._timer: asyncio.TimerHandle | None = None
        self._threads = ThreadPoolExecutor(policy.instances, f"tract-{name}")

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._alive

    @property
    def running(self) -> int:
        """How many runs are under way."""
        return self._running

    def is_quick(self, shapes: Hashable) -> bool:
        """Whether inputs of these shapes are run at once, in the thread that asks."""
        return not self._running and not self._alive and self._took.get(shapes, 1.0) < QUICK_S

    def apart(self, work: Callable[[], None]) -> None:
        """Have something done by a thread that runs the model, when it has nothing else to do."""
        self._threads.submit(work)

    def close(self) -> None:
        """Nothing more will come."""
        self._threads.shutdown(wait=False)

    async def infer(self, inputs: Sequence[Array], priority: int = 0, timeout_s: float | None = None) -> list[Array]:
        """The outputs for inputs that fit. ``priority``: 0 for the usual one. ``timeout_s``: until it is run, at most.

        Raises Busy where too many wait, TooLate where it waited too long, and what the run raises.
        """
        shapes = tuple([array.shape for array in inputs])
        if self.is_quick(shapes):
            return self._run_here(inputs, shapes)
        waiting = self._admit(inputs, priority, timeout_s)
        self._next()
        return await waiting.result

    def _run_here(self, inputs: Sequence[Array], shapes: Hashable) -> list[Array]:
        begun = perf_counter()
        outputs = self._run(inputs)
        took = perf_counter() - begun
        self._remember(shapes, took)
        self._told.run(1, self._rows(inputs), (0.0, took, 0.0))
        return outputs

    def _admit(self, inputs: Sequence[Array], priority: int, timeout_s: float | None) -> WaitingRequest:
        policy = self._policy
        rank = priority if 0 < priority <= policy.levels else policy.priority  # as Triton takes others
        if self._alive >= policy.most_waiting:
            self._told.refused += 1
            problem = f"{self._alive} requests wait for it, and more may not"
            raise Busy(problem, where=f"model {self._name!r}", hint="ask again later")
        patience = timeout_s if timeout_s is not None and policy.allows_timeout else policy.timeout_s
        if patience is not None and self._running and patience < self._mean:
            self._told.refused += 1
            raise self._too_late(patience)
        key = None if self._joining is None else self._joining.key(inputs)
        loop = asyncio.get_running_loop()
        waiting = WaitingRequest(rank, next(self._numbers), inputs, key, loop.create_future(), perf_counter())
        heappush(self._waiting, waiting)
        self._alive += 1
        if patience is not None:
            timer = loop.call_later(patience, self._give_up, waiting, patience)
            waiting.result.add_done_callback(lambda _: timer.cancel())
        waiting.result.add_done_callback(lambda done: self._left(waiting) if done.cancelled() else None)
        return waiting

    def _left(self, waiting: WaitingRequest) -> None:
        """A client has left."""
        self._told.cancelled += 1
        if waiting in self._waiting:
            self._drop(waiting)

    def _drop(self, waiting: WaitingRequest) -> None:
        self._waiting = [one for one in self._waiting if one is not waiting]
        heapify(self._waiting)
        self._alive -= 1

    def _give_up(self, waiting: WaitingRequest, patience: float) -> None:
        """The time is over in which a request was to begin."""
        if any(one is waiting for one in self._waiting):
            self._drop(waiting)
            waiting.result.set_exception(self._too_late(patience))

    def _too_late(self, patience: float) -> TooLate:
        problem = f"it waited for {patience:g} seconds, and was not run" if patience else "its time was over"
        return TooLate(problem, where=f"model {self._name!r}", hint="allow more time, or ask again later")

    def _next(self) -> None:
        """Begin the next runs, as many as there are threads for."""
        while self._waiting and self._running < self._policy.instances and not self._waits_for_more():
            group = self._group()
            self._running += 1
            self._was_joined = len(group) > 1
            now = perf_counter()
            for one in group:
                self._told.queue.add(now - one.since)
            task = asyncio.get_running_loop().run_in_executor(self._threads, self._run_all, [o.inputs for o in group])
            task.add_done_callback(lambda done, group=group: self._over(group, done))

    def _waits_for_more(self) -> bool:
        """Whether the first run waits for rows that may come; never for a client that is alone."""
        policy, joining = self._policy, self._joining
        if not policy.delay_s or joining is None or not self._was_joined:
            return False
        rows = sum(joining.rows(one.inputs) for one in self._waiting if one.key is not None)
        left = min(one.since for one in self._waiting) + policy.delay_s - perf_counter()
        if rows >= policy.most_rows or left <= 0:
            return False
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(left, self._delayed)
        return True

    def _delayed(self) -> None:
        self._timer = None
        self._next()

    def _group(self) -> list[WaitingRequest]:
        """The first request, and those that can be joined with it."""
        first = heappop(self._waiting)
        group, joining = [first], self._joining
        if joining is not None and first.key is not None:
            rows, rest = joining.rows(first.inputs), list[WaitingRequest]()
            for one in sorted(self._waiting):
                more = joining.rows(one.inputs) if one.key == first.key else self._policy.most_rows
                if rows + more > self._policy.most_rows:
                    rest.append(one)
                else:
                    group.append(one)
                    rows += more
            self._waiting = rest  # sorted, and so a heap
        self._alive -= len(group)
        return group

    def _run_all(self, requests: list[Sequence[Array]]) -> tuple[list[Any], tuple[float, float, float]]:
        """The outputs, or what was raised, of each request. In a thread of its own."""
        begun = perf_counter()
        if len(requests) == 1 or self._joining is None:
            found: list[Any] = [self._tried(one) for one in requests]
            return found, (0.0, perf_counter() - begun, 0.0)
        inputs = self._joining.joined(requests)
        laid = perf_counter()
        outputs = self._tried(inputs)
        ran = perf_counter()
        if isinstance(outputs, BaseException):  # each alone, so that one bad request harms no other
            return [self._tried(one) for one in requests], (laid - begun, perf_counter() - laid, 0.0)
        parts = self._joining.apart(outputs, requests)
        return list(parts), (laid - begun, ran - laid, perf_counter() - ran)

    def _tried(self, inputs: Sequence[Array]) -> Any:
        try:
            return self._run(inputs)
        except Exception as error:  # whoever asked is told, whatever it is
            return error

    def _over(
        self, group: list[WaitingRequest], done: asyncio.Future[tuple[list[Any], tuple[float, float, float]]]
    ) -> None:
        """A run has ended: tell whoever waits for it, and begin the next."""
        self._running -= 1
        found, seconds = done.result()
        done_well = [one for one, result in zip(group, found, strict=True) if not isinstance(result, BaseException)]
        if done_well:
            self._told.run(len(done_well), sum(self._rows(one.inputs) for one in done_well), seconds)
        self._mean += (seconds[1] - self._mean) * (0.2 if self._mean else 1.0)
        if len(group) == 1:
            self._remember(tuple([array.shape for array in group[0].inputs]), seconds[1])
        for one, result in zip(group, found, strict=True):
            if one.result.done():
                continue
            if isinstance(result, BaseException):
                one.result.set_exception(result)
            else:
                one.result.set_result(result)
        self._next()

    def _remember(self, shapes: Hashable, took: float) -> None:
        """How long a run takes: about the shortest time of late, as others may hold up the processor."""
        if len(self._took) >= _SHAPES and shapes not in self._took:
            self._took.clear()
        before = self._took.get(shapes, took)
        slower = took if took > SLOW_S else before + (min(took, 10 * before) - before) * 0.05
        self._took[shapes] = took if took < before else slower

    def _rows(self, inputs: Sequence[Array]) -> int:
        joining = self._joining
        return joining.rows(inputs) if joining is not None and joining.key(inputs) is not None else 1
