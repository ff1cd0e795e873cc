"""One policy in a runtime: its observations that wait, its agents, its lock, and what is known of its time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeAlias

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_inferers.batcher import Batcher
from tract_inferers.errors import IncompatibleInferer, UnknownBrain
from tract_inferers.inferer import Inferer, Remembering
from tract_inferers.responses import Response, Responses, State
from tract_inferers.runtime.locks import BrainLock, Locks
from tract_inferers.runtime.timing import Timing
from tract_inferers.stateful import StatefulInferer

Clock: TypeAlias = Callable[[], float]
"""What time it is, in seconds from anywhere; it never goes back."""


class BrainId(int):
    """The number of a brain in its runtime. None is ever used again."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"BrainId({int(self)})"

    def __str__(self) -> str:
        return str(int(self))


@frozen
class BrainStats:
    """What became of a brain so far. Times are in seconds, and 0 where nothing was measured.

    ``runs``, ``rows``: batches, and rows in them, that ran; `Runtime.infer_single` is one of one row. ``errors``: runs
    that failed. ``pending``: rows that wait. ``p50``, ``p99``: times that half and 99 of 100 of the last 512 runs did
    not exceed, without the first. ``fixed``, ``per_row``: what a run is expected to take, and what more for each row.
    """

    runs: int
    rows: int
    errors: int
    pending: int
    p50: float
    p99: float
    fixed: float
    per_row: float


class Brain:
    """One policy in a runtime. ``with brain`` waits until it is free, and holds it."""

    def __init__(self, number: BrainId, inferer: Inferer, locks: Locks, *, refuse_nan: bool) -> None:
        self.number = number
        self.inferer = inferer
        self.batcher = Batcher(inferer, brain=number, refuse_nan=refuse_nan)
        self.timing = Timing()
        self.is_running = self.is_removed = False
        self._single = Batcher(inferer, 1, brain=number, refuse_nan=refuse_nan)
        self.lock = BrainLock(f"brain {number}", locks)
        self._runs = self._rows = self._errors = 0

    def __enter__(self) -> Self:
        self.lock.__enter__()
        if self.is_removed:
            self.lock.__exit__()
            raise UnknownBrain(f"there is no brain {self.number} any longer")
        return self

    def __exit__(self, *_: object) -> None:
        self.lock.__exit__()

    def run(self, clock: Clock, until: float | None = None) -> Responses | None:
        """Run the rows that wait, and forget them: the responses.

        ``until``: passed over where the clock shows that or more, or would after as long as the run is expected to
        take. ``None`` comes back for a brain that is passed over, has no rows, or is running in another thread. Raises
        what its inferer raises; the rows wait on then.
        """
        if self.is_running or self.batcher.is_empty():
            return None
        with self.lock:
            rows = len(self.batcher)  # none where the brain was removed meanwhile
            if not rows or not (until is None or self._fits(rows, until - clock())):
                return None
            self.is_running = True
            try:
                return self._timed(self.batcher, clock)
            finally:
                self.is_running = False

    def _fits(self, rows: int, left: float) -> bool:
        return left > 0 and self.timing.estimate(rows) <= left

    def expected(self) -> float:
        """Seconds that a run of the rows that wait should take."""
        return self.timing.estimate(len(self.batcher))

    def infer_single(self, agent: int, observation: State, clock: Clock) -> Response:
        """Run one observation at once; those that wait are left alone. The brain is held."""
        try:
            self._single.push(agent, observation)
            (response,) = self._timed(self._single, clock).values()
        finally:
            self._single.clear()
        return response

    def _timed(self, batcher: Batcher, clock: Clock) -> Responses:
        rows, start = len(batcher), clock()
        try:
            responses = batcher.execute(self.inferer)
        except BaseException:
            self._errors += 1
            raise
        self.timing.add(rows, clock() - start)
        self._runs += 1
        self._rows += rows
        return responses

    def remembering(self) -> Remembering:
        """The inferer, where it knows something of its agents. Raises InputError where it does not."""
        if isinstance(self.inferer, Remembering):
            return self.inferer
        problem = f"{type(self.inferer).__name__} remembers nothing of its agents"
        raise InputError(problem, where=f"brain {self.number}", hint="a RecurrentTracker has a memory for each agent")

    def replace(self, new: Inferer) -> None:
        """Another policy in the place of this one, as `Runtime.replace_inferer` says. The brain is held."""
        inferer = self.inferer
        if isinstance(inferer, StatefulInferer) and not isinstance(new, StatefulInferer):
            inferer.replace_inferer(new)
        else:
            StatefulInferer.check_compatible_shapes(inferer, new)
            if new is not inferer and isinstance(inferer, Remembering) and isinstance(new, Remembering):
                _move_agents(inferer, new)
            self.inferer = new
        self.timing.renew()

    def stats(self) -> BrainStats:
        """What became of it so far; it need not be held."""
        p50, p99 = self.timing.quantiles(0.5, 0.99)
        fixed, per_row = self.timing.line()
        return BrainStats(self._runs, self._rows, self._errors, len(self.batcher), p50, p99, fixed, per_row)


def _move_agents(old: Remembering, new: Remembering) -> None:
    """Let the agents of one policy be those of another. Raises IncompatibleInferer where they remember other things."""
    try:
        new.restore(old.snapshot())
    except InputError as error:
        hint = "give the policy without its layers, to keep those that are there; or remove_inferer and add_inferer"
        raise IncompatibleInferer(f"its layers remember other things: {error.problem}", hint=hint) from None
