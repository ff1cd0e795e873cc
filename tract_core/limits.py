"""How much a model may ask for while it is loaded, typed and simplified, and what one tensor may take when it runs.

`LoadLimits` says how much is allowed. A `Budget` counts what one piece of work, such as loading a file with all the
graphs in it, has taken so far; the functions that build graphs take from the budget that is on. Without one, nothing
is counted: who builds a model by hand knows what he does.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from math import inf, prod
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from tract_core.errors import LimitExceeded, RunError
from tract_core.frozen import frozen

MAX_SIZE: Final = (1 << 63) - 1
"""The greatest size of an axis: sizes are 64-bit integers wherever arrays hold them."""


@frozen
class LoadLimits:
    """What a model file may ask for. The defaults let every model through that a machine could run.

    ``max_bytes``: of a model file, and of each file of tensors beside it. ``max_parsed_bytes``: of a model file
    without its weights; parsed, they take up to a hundred times as much. ``max_tensor_bytes``: of one tensor, with
    its texts, in the file or in a run; a run allows no more than the machine's memory either. ``max_nodes``: of a
    file's graphs, functions and bodies, each time that they are looked at, and of the core operators that they become.
    ``max_outputs``: of one graph; it may have as many inputs. ``max_depth``: graphs and functions inside one another.
    ``max_rank``: axes of a tensor. ``max_fold_bytes``: of all the constants that loading or simplifying makes, beyond
    those that they replace. ``max_fold_ops``: operations that making one constant takes. ``deadline_s``: seconds that
    loading, typing and simplifying take each. ``run_deadline_s``: seconds that one run takes, looked at between nodes
    and between iterations; none by default, as only who runs a model knows how long is too long.
    """

    max_bytes: int = 1 << 38
    max_parsed_bytes: int = 1 << 28
    max_tensor_bytes: int = 1 << 36
    max_nodes: int = 1_000_000
    max_outputs: int = 4096
    max_depth: int = 32
    max_rank: int = 64
    max_fold_bytes: int = 1 << 29
    max_fold_ops: int = 1 << 30
    deadline_s: float = 300.0
    run_deadline_s: float = inf

    @property
    def for_rewriting(self) -> LoadLimits:
        """The same without the limit on nodes: patches replace nodes, and their number has a bound of its own."""
        return replace(self, max_nodes=sys.maxsize)


DEFAULT_LIMITS: Final = LoadLimits()


class Budget:
    """What one piece of work has taken so far, against ``limits``."""

    def __init__(self, limits: LoadLimits) -> None:
        self.limits = limits
        self._nodes = 0
        self._held = 0
        self._until = monotonic() + limits.deadline_s

    @property
    def nodes(self) -> int:
        """How many were looked at or made so far."""
        return self._nodes

    def node(self, count: int = 1) -> None:
        """Nodes are looked at or made. Raises LimitExceeded when there are too many, or when time is up."""
        self.has_room_for(count)
        self._nodes += count
        self.time()

    def has_room_for(self, count: int) -> None:
        """So many nodes are to come at least. Raises LimitExceeded when they are too many."""
        if self._nodes + count > self.limits.max_nodes:
            raise LimitExceeded(
                f"there are more than {self.limits.max_nodes} nodes, those of bodies and functions included",
                hint="a model that needs so many can be loaded with LoadLimits(max_nodes=...)",
            )

    def time(self) -> None:
        """Raises LimitExceeded when time is up."""
        if monotonic() > self._until:
            raise LimitExceeded(
                f"it takes longer than {self.limits.deadline_s:g} seconds",
                hint="a model that needs so long can be loaded with LoadLimits(deadline_s=...)",
            )

    def take_bytes(self, made: int, freed: int = 0) -> bool:
        """Take bytes that are made, and give back those that they replace. Returns whether the limits allow it."""
        after = max(self._held + made - freed, 0)
        if after > self.limits.max_fold_bytes and made > freed:
            return False
        self._held = after
        return True


_BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def spending(limits: LoadLimits) -> Generator[Budget]:
    """Count the work that is done inside against ``limits``; inside another budget, against those of that one."""
    budget = _BUDGET.get()
    if budget is not None:
        yield budget
        return
    budget = Budget(limits)
    token = _BUDGET.set(budget)
    try:
        yield budget
    finally:
        _BUDGET.reset(token)


def current_budget() -> Budget | None:
    """The budget that is on, if any."""
    return _BUDGET.get()


def limits_now() -> LoadLimits:
    """The limits of the budget that is on; the defaults where none is."""
    budget = _BUDGET.get()
    return DEFAULT_LIMITS if budget is None else budget.limits


def count_node() -> None:
    """Take a node from the budget. Raises LimitExceeded."""
    budget = _BUDGET.get()
    if budget is not None:
        budget.node()


@cache
def machine_memory() -> int:
    """Bytes of memory that this process may have: what is built in, or less where a limit is set on it."""
    found = [1 << 46, *_built_in(), *_of_process(), *_of_container()]
    return min(found)


def _built_in() -> Iterator[int]:
    try:
        import os

        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on this system
        return


def _of_process() -> Iterator[int]:
    try:
        import resource
    except ImportError:  # not on this system
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        yield soft


def _of_container() -> Iterator[int]:
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            yield int(text)


class RunBudget(NamedTuple):
    """What one run may take: ``tensor_bytes`` for one tensor, and ``seconds`` in all, which end at ``until``."""

    tensor_bytes: int
    seconds: float
    until: float

    def time(self) -> None:
        """Raises RunError when time is up."""
        if monotonic() > self.until:
            raise RunError(
                f"the run takes longer than {self.seconds:g} seconds",
                hint="a run that needs so long is allowed with LoadLimits(run_deadline_s=...)",
            )


_RUN: ContextVar[RunBudget | None] = ContextVar("run", default=None)


class running:  # noqa: N801 - it is written as a function: ``with running(limit):``
    """Inside, `check_tensor` allows ``tensor_bytes``. The time of the outermost run counts, for those inside it too.

    Raises RunError when that is up already. A class, as every turn of every body comes here.
    """

    __slots__ = ("_seconds", "_tensor_bytes", "_token")

    def __init__(self, tensor_bytes: int, seconds: float = inf) -> None:
        self._tensor_bytes = tensor_bytes
        self._seconds = seconds

    def __enter__(self) -> RunBudget:
        outer = _RUN.get()
        if outer is None:
            budget = RunBudget(self._tensor_bytes, self._seconds, monotonic() + self._seconds)
        else:
            budget = RunBudget(self._tensor_bytes, outer.seconds, outer.until)
            budget.time()
        self._token = _RUN.set(budget)
        return budget

    def __exit__(self, *raised: object) -> None:
        _RUN.reset(self._token)


def run_limit(limits: LoadLimits) -> int:
    """Bytes that one tensor may take in a run."""
    return min(limits.max_tensor_bytes, machine_memory())


def check_tensor(shape: Iterable[int], itemsize: int) -> None:
    """For operators whose output only a run can tell: raises RunError where it would take too many bytes.

    ``shape``: its sizes, none negative; ``itemsize``: bytes of one element.
    """
    budget = _RUN.get()
    allowed = run_limit(DEFAULT_LIMITS) if budget is None else budget.tensor_bytes
    sizes = tuple(shape)
    if prod(sizes) * itemsize > allowed or max(sizes, default=0) > MAX_SIZE:
        raise RunError(too_large(sizes, itemsize, allowed), hint=TOO_LARGE_HINT)


def check_texts(count: int) -> None:
    """For what makes texts: raises RunError where those of one tensor take too many bytes together.

    Outside a run, where constants are made early, no more is allowed than all of them may take.
    """
    budget = _RUN.get()
    limits = limits_now()
    allowed = min(run_limit(limits), limits.max_fold_bytes) if budget is None else budget.tensor_bytes
    if count > allowed:
        raise RunError(f"the texts of a tensor take {count} bytes, {allowed} are allowed", hint=TOO_LARGE_HINT)


def check_run_time() -> None:
    """For operators that go round for long: raises RunError when the time of the run is up."""
    budget = _RUN.get()
    if budget is not None:
        budget.time()


TOO_LARGE_HINT: Final = "check the values that sizes are computed from; LoadLimits(max_tensor_bytes=...) allows more"


def too_large(shape: Iterable[int], itemsize: int, allowed: int) -> str:
    """What to say of a tensor that takes more bytes than allowed."""
    sizes = tuple(shape)
    listed = ",".join(map(str, sizes))
    return f"a tensor of shape [{listed}] would take {prod(sizes) * itemsize} bytes, {allowed} are allowed"
