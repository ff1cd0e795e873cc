"""How much a model may ask for while it is loaded, typed and simplified, and what one tensor may take when it runs.

`LoadLimits` says how much is allowed. A `Budget` counts what one piece of work, such as loading a file with all the
graphs in it, has taken so far; the functions that build graphs take from the budget that is on. Without one, nothing
is counted: who builds a model by hand knows what he does.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from math import inf, prod
from numbers import Real
from operator import ge
from time import monotonic
from typing import Any, Final

from tract_core.errors import InputError, LimitExceeded, RunError
from tract_core.frozen import frozen, replaced

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
    those that they replace. ``max_fold_ops``: operations that making one constant takes. ``max_run_bytes``: of all
    tensors that a run holds at the same time, with what its operators need besides, but without its inputs and the
    model's constants; no more than the machine's memory either. ``deadline_s``: seconds that loading, typing,
    simplifying and preparing take each. ``run_deadline_s``: seconds that one run takes; none by default, as only who
    runs a model knows how long is too long.
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
    max_run_bytes: int = 1 << 46
    deadline_s: float = 300.0
    run_deadline_s: float = inf

    def __post_init__(self) -> None:
        for name in LoadLimits.__match_args__:
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not ge(value, 0):  # which NaN is not
                raise InputError(f"LoadLimits: {name} is {value!r}, wanted a number that is 0 or more")

    @property
    def for_rewriting(self) -> LoadLimits:
        """The same without the limit on nodes: patches replace nodes, and their number has a bound of its own."""
        return replaced(self, max_nodes=sys.maxsize)


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
        self._nodes += count
        if self._nodes > self.limits.max_nodes:
            self._nodes -= count
            self.has_room_for(count)
        if monotonic() >= self._until:
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
        if monotonic() >= self._until:
            raise LimitExceeded(
                f"it takes longer than {self.limits.deadline_s:g} seconds",
                hint="a model that needs so long can be loaded with LoadLimits(deadline_s=...)",
            )

    @property
    def seconds_left(self) -> float:
        """Until time is up; 0 where it is, and no more than a thread can wait."""
        return seconds_until(self._until)

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


def check_time() -> None:
    """Raises LimitExceeded where the budget that is on has no time left."""
    budget = _BUDGET.get()
    if budget is not None:
        budget.time()


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


def count_nodes(count: int) -> None:
    """Take so many nodes from the budget. Raises LimitExceeded."""
    budget = _BUDGET.get()
    if budget is not None:
        budget.node(count)


@cache
def machine_memory() -> int:
    """Bytes of memory that this process may have: what is built in, or less where a limit is set on it."""
    found = [1 << 46, *_built_in(), *_of_process(), *_of_container()]
    return min(found)


def _built_in() -> Iterator[int]:
    from tract_core.machine import built_in_memory

    found = built_in_memory()
    if found is not None:
        yield found


def _of_process() -> Iterator[int]:
    if sys.platform == "win32":  # where a process has no limit of its own
        return
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        yield soft


def _of_container() -> Iterator[int]:
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read().strip()
        except OSError:
            continue
        if text.isdecimal():
            yield int(text)


class RunBudget:
    """What one run may take: ``tensor_bytes`` for one tensor, ``room`` for all, ``seconds``, which end at ``until``."""

    __slots__ = ("room", "seconds", "tensor_bytes", "until")

    def __init__(self, tensor_bytes: int, room: Room, seconds: float, until: float) -> None:
        self.tensor_bytes = tensor_bytes
        self.room = room
        self.seconds = seconds
        self.until = until

    def time(self) -> None:
        """Raises RunError when time is up."""
        if monotonic() >= self.until:
            raise RunError(
                f"the run takes longer than {self.seconds:g} seconds",
                hint="a run that needs so long is allowed with LoadLimits(run_deadline_s=...)",
            )


class Room:
    """How much memory the tensors of a run may take at the same time, and how much they do: ``allowed``, ``taken``."""

    __slots__ = ("allowed", "taken")

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.taken = 0

    def check(self, more: int) -> None:
        """Raises RunError where so many bytes are too many, besides those that are taken."""
        if self.taken + more > self.allowed:
            raise RunError(
                f"tensors would take {self.taken + more} bytes at the same time, {self.allowed} are allowed",
                hint="give smaller inputs; LoadLimits(max_run_bytes=...) allows as much as the machine has",
            )


_RUN: ContextVar[RunBudget | None] = ContextVar("run", default=None)


class running:  # noqa: N801 - it is written as a function: ``with running(limit):``
    """Inside, `check_tensor` allows ``tensor_bytes``, and ``run_bytes`` for all that is there at the same time.

    The time and the room of the outermost run count, for those inside it too. Raises RunError when its time is up
    already. A class, as every turn of every body comes here.
    """

    __slots__ = ("_run_bytes", "_seconds", "_taken", "_tensor_bytes", "_token")

    def __init__(self, tensor_bytes: int, seconds: float = inf, run_bytes: int = MAX_SIZE) -> None:
        self._tensor_bytes = tensor_bytes
        self._seconds = seconds
        self._run_bytes = run_bytes

    def __enter__(self) -> RunBudget:
        outer = _RUN.get()
        if outer is None:
            until = monotonic() + self._seconds
            budget = RunBudget(self._tensor_bytes, Room(self._run_bytes), self._seconds, until)
        else:
            budget = RunBudget(self._tensor_bytes, outer.room, outer.seconds, outer.until)
            budget.time()
        self._taken = budget.room.taken
        self._token = _RUN.set(budget)
        return budget

    def __exit__(self, *raised: object) -> None:
        budget = _RUN.get()
        assert budget is not None  # it was set
        budget.room.taken = self._taken
        _RUN.reset(self._token)


def run_limit(limits: LoadLimits) -> int:
    """Bytes that one tensor may take in a run."""
    return min(limits.max_tensor_bytes, machine_memory())


def run_room(limits: LoadLimits) -> int:
    """Bytes that all tensors of a run may take that are there at the same time."""
    return min(limits.max_run_bytes, machine_memory())


def check_tensor(shape: Iterable[int], itemsize: int) -> None:
    """For what makes a tensor whose size only a run tells: raises RunError where that would take too many bytes.

    ``shape``: its sizes, none negative; ``itemsize``: bytes of one element.
    """
    budget = _RUN.get()
    sizes = tuple(shape)
    problem = too_large(sizes, itemsize, run_limit(DEFAULT_LIMITS) if budget is None else budget.tensor_bytes)
    if problem is not None:
        raise RunError(problem, hint=TOO_LARGE_HINT)
    if budget is not None:
        budget.room.check(prod(sizes) * itemsize)


def check_texts(count: int) -> None:
    """For what makes texts: raises RunError where those of one tensor take too many bytes together.

    Outside a run, where constants are made early, no more is allowed than all of them may take.
    """
    budget = _RUN.get()
    limits = limits_now()
    allowed = min(run_limit(limits), limits.max_fold_bytes) if budget is None else budget.tensor_bytes
    if count > allowed:
        raise RunError(f"the texts of a tensor take {count} bytes, {allowed} are allowed", hint=TOO_LARGE_HINT)


def check_room(more: int, allowed: int = MAX_SIZE) -> None:
    """For what makes tensors: raises RunError where so many bytes are too many, besides those that the run holds.

    ``allowed``: what counts where no run is on.
    """
    budget = _RUN.get()
    room = Room(allowed) if budget is None else budget.room
    room.check(more)


def check_run_time() -> None:
    """For operators that go round for long: raises RunError when the time of the run is up."""
    budget = _RUN.get()
    if budget is not None:
        budget.time()


def seconds_until(time: float) -> float:
    """From now on until a time of `time.monotonic`; 0 where it is past, and no more than a thread can wait."""
    from threading import TIMEOUT_MAX

    return min(max(time - monotonic(), 0.0), TIMEOUT_MAX)


def run_until() -> float:
    """When the time of the run is up, in seconds of `time.monotonic`."""
    budget = _RUN.get()
    return inf if budget is None else budget.until


TOO_LARGE_HINT: Final = "check the values that sizes are computed from; LoadLimits(max_tensor_bytes=...) allows more"


def too_large(shape: Sequence[int], itemsize: int, allowed: int) -> str | None:
    """What is wrong with a tensor that takes more bytes than allowed, or that no array can be; ``None`` of any other.

    As in NumPy, the sizes of a tensor without elements count as if it had some.
    """
    total = itemsize
    for size in shape:
        total *= size
    if total > allowed:
        return f"a tensor of shape {_listed(shape)} would take {total} bytes, {allowed} are allowed"
    if total or prod(size for size in shape if size) * itemsize <= MAX_SIZE:
        return None
    return f"a tensor of shape {_listed(shape)} cannot be: its sizes have no product of 64 bits"


def _listed(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"
