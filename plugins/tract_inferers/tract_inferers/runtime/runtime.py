"""Several policies in one program, run together, within a budget of time, or on several threads."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import count
from math import isnan, nan
from numbers import Real
from time import perf_counter
from typing import Any, Self, TypeAlias, cast

import numpy as np

from tract_core.errors import InputError
from tract_inferers.errors import BrainsFailed, OrphanedData, UnknownBrain
from tract_inferers.inferer import Inferer
from tract_inferers.observations import checked_id, checked_ids
from tract_inferers.responses import Response, Responses, State
from tract_inferers.runtime.brain import Brain, BrainId, BrainStats, Clock
from tract_inferers.runtime.locks import Locks
from tract_inferers.runtime.threads import assigned, checked_threads
from tract_inferers.slots import Slots
from tract_inferers.snapshot import AgentSnapshot

Budget: TypeAlias = float | timedelta
"""Seconds, or a span of time."""

Results: TypeAlias = dict[Brain, Responses | Exception]
"""What became of the brains that ran."""

Orphans: TypeAlias = dict[BrainId, dict[int, dict[str, Any]]]
"""Observations by brain and agent."""


class Runtime:
    """Several policies, called brains, and the observations that wait for them. Many threads may use it.

    ``threads``: how many the threaded methods use; ``None``: the cores that the process may use. They are started when
    they are first needed, and end with `close`, or with a ``with`` statement around the runtime. ``clock``: what time
    it is, in seconds.

    **Who runs.** `run` runs every brain that has rows. `run_for` asks the brains one after the other, those first whose
    last run is longest ago, new ones last. A brain without rows is passed over. The first one with rows always runs.
    Each other one runs when time is left and what it is expected to take fits into that. What ran goes to the end, also
    when it failed; what was passed over keeps its place before them. So a brain that has rows runs at the latest in the
    n-th call, where n is the number of brains, and a call takes longer than its budget by one run at most.

    **What fails** keeps its rows and takes nothing from the others: all run that were to run. Then BrainsFailed is
    raised, with the responses of the others. A brain that is running in another thread is passed over.

    An inferer may call the runtime for other brains while it runs. Where it would wait for itself, InputError is
    raised.
    """

    def __init__(self, threads: int | None = None, *, clock: Clock = perf_counter) -> None:
        self._threads = checked_threads(threads)
        self._clock = clock
        self._locks = Locks()
        self._numbers = count()
        self._tables = threading.Lock()  # for what follows; nobody waits for a brain who has it
        self._brains: dict[int, Brain] = {}  # as they were added
        self._queue: dict[BrainId, Brain] = {}  # in the order in which `run_for` asks them
        self._pool: ThreadPoolExecutor | None = None

    def add_inferer(self, inferer: Inferer, *, refuse_nan: bool = False) -> BrainId:
        """Add a policy, at the end of those that `run_for` asks: its number.

        One that remembers its agents is that of one brain; another one may be that of several. ``refuse_nan``: whether
        observations with not-a-number are refused.
        """
        with self._tables:
            number = BrainId(next(self._numbers))
        brain = Brain(number, inferer, self._locks, refuse_nan=refuse_nan)
        with self._tables:
            self._brains[number] = self._queue[number] = brain
        return number

    def remove_inferer(self, brain: int) -> None:
        """Remove a brain. Raises OrphanedData, after that, with the observations that waited for it, where any did."""
        with self._brain(brain) as found:
            orphans = {found.number: found.batcher.pending()}
            self._remove(found)
        _raise_orphaned(orphans)

    def clear(self) -> None:
        """Remove all brains. Raises OrphanedData, after that, with the observations that waited, where any did.

        Numbers go on from where they were. Raises InputError, and removes none, when an inferer calls it.
        """
        if self._is_inside():
            raise InputError("a brain is running in this thread", where="clear", hint="call it when run() is through")
        orphans: Orphans = {}
        for brain in self._listed():
            try:
                with brain:
                    orphans[brain.number] = brain.batcher.pending()
                    self._remove(brain)
            except UnknownBrain:  # another thread was faster
                continue
        _raise_orphaned(orphans)

    def replace_inferer(self, brain: int, new: Inferer) -> None:
        """Another policy takes the place of that of a brain; observations that wait, wait on.

        Where the brain has a `StatefulInferer`, and ``new`` is none, the policy in its middle is replaced; else the
        whole is, and what its agents remember goes over to the new one. Either way the agents live on. What the old one
        took serves as the estimate until there is a measurement.

        Raises IncompatibleInferer where inputs or outputs, or what is remembered, are different; nothing has changed
        then.
        """
        with self._brain(brain) as found:
            found.replace(new)

    def push(self, brain: int, agent: int, observation: State, *, replace: bool = False) -> None:
        """Add the observation of an agent, an array by the name of each input, as `Batcher.push` does.

        ``replace``: whether it takes the place of one that waits, as where the brain was passed over. The call waits
        while that brain runs.
        """
        with self._brain(brain) as found:
            found.batcher.push(agent, observation, replace=replace)

    def push_many(self, brain: int, ids: Any, observations: Mapping[str, Any], *, replace: bool = False) -> None:
        """Add whole arrays, with the agents along axis 0, as `Batcher.push_many` does. It waits as `push` does."""
        with self._brain(brain) as found:
            found.batcher.push_many(ids, observations, replace=replace)

    def infer_single(self, brain: int, observation: State, agent: int = 0) -> Response:
        """Run one observation at once. What waits is left alone, and the brain keeps its place among the others."""
        with self._brain(brain) as found:
            return found.infer_single(agent, observation, self._clock)

    def begin_agent(self, brain: int, agent: int) -> None:
        """An agent comes: from now on it is remembered, beginning anew where it was known."""
        with self._brain(brain) as found:
            found.inferer.begin_agent(checked_id(agent))

    def end_agent(self, brain: int, agent: int) -> None:
        """An agent goes, with what is remembered of it, and with its row where one waits."""
        with self._brain(brain) as found:
            found.inferer.end_agent(checked_id(agent))
            found.batcher.drop([agent])

    def begin_agents(self, brain: int, agents: Iterable[int]) -> None:
        """Several come, as `begin_agent` says. Raises InputError, before any does, for what is no agent."""
        ids = checked_ids(agents)
        with self._brain(brain) as found:
            for agent in ids:
                found.inferer.begin_agent(agent)

    def end_agents(self, brain: int, agents: Iterable[int]) -> None:
        """Several go, as `end_agent` says."""
        ids = checked_ids(agents)
        with self._brain(brain) as found:
            for agent in ids:
                found.inferer.end_agent(agent)
            found.batcher.drop(ids)

    def snapshot(self, brain: int, agents: Iterable[int] | None = None) -> AgentSnapshot:
        """What a brain knows of these agents, or of all. Raises InputError where it remembers nothing."""
        with self._brain(brain) as found:
            return found.remembering().snapshot(agents)

    def restore(self, brain: int, snapshot: AgentSnapshot) -> None:
        """Make the agents of a snapshot what they were. Raises InputError where it does not fit, changing nothing."""
        with self._brain(brain) as found:
            found.remembering().restore(snapshot)

    def input_shapes(self, brain: int) -> Slots:
        """The inputs that an observation has, in the order of the model."""
        return self._brain(brain).inferer.input_shapes()

    def output_shapes(self, brain: int) -> Slots:
        """The outputs that a response has, in the order of the model."""
        return self._brain(brain).inferer.output_shapes()

    def brains(self) -> list[BrainId]:
        """The brains that there are, as they were added."""
        return [brain.number for brain in self._listed()]

    def waiting(self, brain: int) -> int:
        """How many observations wait for a brain. It does not wait for a brain that runs."""
        return len(self._brain(brain).batcher)

    def pending(self, brain: int) -> dict[int, dict[str, Any]]:
        """The observations that wait for a brain, by agent, as copies."""
        with self._brain(brain) as found:
            return found.batcher.pending()

    def stats(self, brain: int) -> BrainStats:
        """How often a brain ran, and how long it took. It does not wait for a brain that runs."""
        return self._brain(brain).stats()

    def run(self) -> dict[BrainId, Responses]:
        """Run every brain that has rows, in the order in which they were added: the responses, by brain.

        Raises BrainsFailed, when all have run, where some failed.
        """
        return self._told(self._served(self._listed()))

    def run_for(self, budget: Budget) -> dict[BrainId, Responses]:
        """Run brains that have rows, as the class says, for so long: the responses, by brain.

        ``budget``: seconds, or a timedelta; with 0, as with less, exactly one brain runs. Raises InputError for another
        budget, and BrainsFailed, at the end, where some failed.
        """
        until = self._clock() + _seconds(budget)
        return self._told(self._served(self._queued(), until, first=True))

    def run_threaded(self) -> dict[BrainId, Responses]:
        """As `run`, with the brains side by side on the threads, those first that should take longest."""
        brains = [brain for brain in self._listed() if not brain.batcher.is_empty()]
        lines = [[brain] for brain in sorted(brains, key=Brain.expected, reverse=True)]
        return self._told(self._spread(brains, lines))

    def run_for_threaded(self, budget: Budget) -> dict[BrainId, Responses]:
        """As `run_for`, on the threads.

        Each brain that is asked goes to the thread with least to do, where it fits there; each thread runs its own one
        after the other, and passes over what no longer fits.
        """
        seconds = _seconds(budget)
        until = self._clock() + seconds
        brains = [brain for brain in self._queued() if not brain.batcher.is_empty()]
        threads = max(min(self._threads, len(brains)), 1)
        lines = assigned([(brain, brain.expected()) for brain in brains], seconds, threads)
        return self._told(self._spread(brains, lines, until))

    def close(self) -> None:
        """End the threads, when they are through. They are started anew when they are needed again."""
        with self._tables:
            pool, self._pool = self._pool, None
        if pool:
            pool.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spread(self, order: list[Brain], lines: list[list[Brain]], until: float | None = None) -> Results:
        """Run each line of brains in a thread, and what heads the first of them in any case. The results in order.

        An inferer that calls this gets no threads, as they would wait for the one that it is in.
        """
        serve = [partial(self._served, line, until, first=not number) for number, line in enumerate(lines) if line]
        if len(serve) < 2 or self._is_inside():
            parts = [one() for one in serve]
        else:
            with self._tables:  # so that close() comes before or after
                self._pool = self._pool or ThreadPoolExecutor(self._threads, "brains")
                started = [self._pool.submit(one) for one in serve]
            parts = [one.result() for one in started]
        results = {brain: result for part in parts for brain, result in part.items()}
        return {brain: results[brain] for brain in order if brain in results}

    def _served(self, line: Iterable[Brain], until: float | None = None, *, first: bool = False) -> Results:
        """Run brains one after the other. ``first``: whether the first that has rows runs whatever the time is."""
        results: Results = {}
        for brain in line:
            try:
                responses = brain.run(self._clock, None if first and not results else until)
            except Exception as error:
                results[brain] = error
            else:
                if responses is not None:
                    results[brain] = responses
        return results

    def _told(self, results: Results) -> dict[BrainId, Responses]:
        """The responses, when what ran has gone to the end of the queue. Raises BrainsFailed where some failed."""
        with self._tables:
            for brain in results:
                if self._queue.pop(brain.number, None):
                    self._queue[brain.number] = brain
        errors = {brain.number: one for brain, one in results.items() if isinstance(one, Exception)}
        responses = {brain.number: one for brain, one in results.items() if not isinstance(one, Exception)}
        if errors:
            texts = "".join(f"\n  brain {number}: {type(error).__name__}: {error}" for number, error in errors.items())
            problem = f"{len(errors)} of {len(results)} brains failed:{texts}"
            failed = BrainsFailed(problem, errors=errors, responses=responses)
            raise failed from ExceptionGroup("the errors of the brains", list(errors.values()))
        return responses

    def _brain(self, number: object) -> Brain:
        found = self._brains.get(cast("int", number)) if isinstance(number, (int, np.integer)) else None
        if found is None:
            named = str(number) if isinstance(number, BrainId) else f"{number!r:.40}"
            there = self.brains()
            some = f"{'..., ' if len(there) > 10 else ''}{', '.join(map(str, there[-10:])) or 'none'}"
            raise UnknownBrain(f"there is no brain {named}; brains: {some}")
        return found

    def _is_inside(self) -> bool:
        """Whether an inferer calls, that is, whether this thread holds a brain."""
        me = threading.get_ident()
        return any(brain.lock.owner == me for brain in self._listed())

    def _listed(self) -> list[Brain]:
        with self._tables:
            return list(self._brains.values())

    def _queued(self) -> list[Brain]:
        with self._tables:
            return list(self._queue.values())

    def _remove(self, brain: Brain) -> None:
        """The brain is held."""
        brain.is_removed = True
        brain.batcher.clear()
        with self._tables:
            del self._brains[brain.number], self._queue[brain.number]


def _seconds(budget: object) -> float:
    """A budget in seconds. Raises InputError for what is none."""
    if isinstance(budget, timedelta):
        return budget.total_seconds()
    seconds = nan
    if not isinstance(budget, bool) and isinstance(budget, Real):
        with suppress(TypeError, OverflowError):  # a timedelta of NumPy, an integer of 400 digits
            seconds = float(budget)
    if isnan(seconds):
        raise InputError(f"is {budget!r:.60}, wanted seconds, or a timedelta", where="budget")
    return seconds


def _raise_orphaned(orphans: Orphans) -> None:
    waited = {brain: observations for brain, observations in orphans.items() if observations}
    if waited:
        rows = ", ".join(f"{len(observations)} of brain {brain}" for brain, observations in waited.items())
        raise OrphanedData(f"observations were waiting when their brain was removed: {rows}", orphans=waited)
