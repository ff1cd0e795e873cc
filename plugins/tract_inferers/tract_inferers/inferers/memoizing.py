"""A plan for each number of agents that comes up, made when it first does."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any, Final, Self, TypeAlias

from tract_core.api.runtime import Runtime
from tract_core.errors import InputError
from tract_inferers.inferers.planned import Planned, checked, checked_sizes, planned, runtime_of
from tract_inferers.models.policy import Policy
from tract_inferers.models.symbolic import AnyModel, policy_of
from tract_inferers.scratch import ScratchPadView

Run: TypeAlias = Callable[..., Any]

CAPACITY: Final = 64
"""Plans that are kept, where no other number is given."""


class MemoizingDynamicInferer(Planned):
    """A policy with a plan for each number of agents that came up: the fastest, once that is made.

    A new number of agents costs a plan, which the caller waits for, but nobody who has another number of agents. With
    ``background`` nobody waits: a plan for any number serves until a thread has made that for the new one. Of those
    plans ``capacity`` are kept, which are those that were used last; ``None``: all. Sizes that are known beforehand are
    better given at once, as ``preloaded_sizes``.
    """

    def __init__(
        self,
        policy: Policy,
        preloaded_sizes: Iterable[int] = (),
        runtime: str | Runtime = "default",
        *,
        capacity: int | None = CAPACITY,
        background: bool = False,
    ) -> None:
        """Raises InputError for a size or a capacity that is none, and for more sizes than are kept."""
        policy = checked(policy, Policy)
        super().__init__(policy.inputs, policy.outputs)
        sizes = sorted(set(checked_sizes(preloaded_sizes)))
        if capacity is not None and (checked_sizes([capacity])[0] < len(sizes)):
            raise InputError(f"{len(sizes)} sizes are to be preloaded, and {capacity} plans are kept", where="capacity")
        self._policy = policy
        self._runtime = runtime_of(runtime)
        self._capacity = capacity
        self._runs = OrderedDict[int, Run]()
        """The plans that there are, those that were used last at the end."""
        self._building = dict[int, Future[Run]]()
        self._lock = Lock()
        self._builder = ThreadPoolExecutor(1, "tract-plans") if background else None
        self._any_size = planned(policy.typed, self._runtime).run if background else None
        for size in sizes:
            self._built(size)

    @classmethod
    def from_model(
        cls,
        model: AnyModel,
        preloaded_sizes: Iterable[int] = (),
        *,
        runtime: str | Runtime = "default",
        capacity: int | None = CAPACITY,
        background: bool = False,
    ) -> Self:
        """For a model, which stays as it is. Raises Unsupported for one that cannot be a policy for many agents.

        ``preloaded_sizes``: numbers of agents whose plans are made now. ``runtime``: what runs them, by name or as a
        `Runtime`. ``capacity``, ``background``: see the class. Raises InputError for a size that is no integer from 1.
        """
        return cls(policy_of(model), preloaded_sizes, runtime, capacity=capacity, background=background)

    from_typed = from_model
    """The same, by the name for models whose types are known."""

    @property
    def sizes(self) -> list[int]:
        """The numbers of agents that there are plans for, in order."""
        with self._lock:
            return sorted(self._runs)

    def select_batch_size(self, max_count: int) -> int:
        """All of them."""
        return max_count

    def infer_raw(self, pad: ScratchPadView) -> None:
        """Run the rows of ``pad``, for which a plan is made if there is none. Raises RunError when the model fails.

        When a plan cannot be made, that is raised, and the next call tries again.
        """
        rows = len(pad.ids)
        with self._lock:
            run = self._runs.get(rows)
            if run is not None:
                self._runs.move_to_end(rows)
        if run is None:
            run = self._built(rows) if self._any_size is None else self._meanwhile(rows, self._any_size)
        run(pad.inputs, out=pad.outputs)

    def _built(self, rows: int) -> Run:
        """The plan for so many rows: made here, unless another thread makes it."""
        plan, is_new = self._plan(rows)
        if is_new:
            self._build(rows, plan)
        return plan.result()

    def _meanwhile(self, rows: int, any_size: Run) -> Run:
        """The plan for any number of rows; the thread is told to make that for so many."""
        plan, is_new = self._plan(rows)
        if is_new and self._builder is not None:
            self._builder.submit(self._build, rows, plan)
        return any_size

    def _plan(self, rows: int) -> tuple[Future[Run], bool]:
        """The plan for so many rows, made or being made, and whether the caller is to make it."""
        with self._lock:
            plan = self._building.get(rows)
            if plan is not None:
                return plan, False
            plan, run = Future[Run](), self._runs.get(rows)
            if run is None:
                self._building[rows] = plan
                return plan, True
        plan.set_result(run)  # another thread has made it since the caller looked
        return plan, False

    def _build(self, rows: int, plan: Future[Run]) -> None:
        try:
            run = planned(self._policy.for_rows(rows), self._runtime).run
        except BaseException as error:
            with self._lock:
                del self._building[rows]
            plan.set_exception(error)
            return
        with self._lock:
            del self._building[rows]
            self._runs[rows] = run
            if self._capacity is not None and len(self._runs) > self._capacity:
                self._runs.popitem(last=False)
        plan.set_result(run)

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(type(self), capacity=self._capacity, background=self._builder is not None)
        return made, (self._policy, self.sizes, self._runtime)
