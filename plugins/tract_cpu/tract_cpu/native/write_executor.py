"""Writes the native functions that run a program: see `executor`."""

from __future__ import annotations

import sys
from typing import Any, Final

from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Function, Variable
from tract_llvm.language.types import INDEX, POINTER, ir_type
from tract_llvm.language.values import Value
from tract_llvm.objects.library import Code
from tract_llvm.objects.origins import key_of_code

from tract_cpu.native.executor import (
    ARGUMENTS,
    BEGIN,
    COURSE,
    DONE,
    END,
    FIRST_HELPER,
    FRAME,
    FUEL,
    FULL,
    GLANCES,
    HELPS,
    KERNEL,
    LINE_WORDS,
    NEXT,
    OVER,
    PATIENCE,
    PROCESSOR,
    PROCESSORS,
    RUNS,
    SCRATCH,
    SCRATCH_BYTES,
    SPINS,
    STEP,
    STOPPED,
    TASK,
)
from tract_cpu.native.objects import DATA

_PARTS_AT: Final = 16
"""The bit from which on an offer says how many parts there are; below, how many are taken."""


def write_executor(module: Any, name: str, isa: Isa, arrays: int) -> None:
    """``name(frame, first, last, team, array, ...)`` runs the steps from ``first`` to before ``last``.

    It ends where the next step is not among these, and as soon as it has taken its `FULL` fuel: then the same call goes
    on from there. Behind a step that refuses, nothing is done. ``team``: the address of the memory by which others
    help, 0 where nobody shall; nobody does either while another run has them. ``array``: the arrays of NumPy, by the
    addresses of the objects, whose elements are passed, in order.
    """
    f = Function(module, name, isa, [POINTER, INDEX, INDEX, INDEX, *[INDEX] * arrays])
    frame = f.buffer(0, INDEX)
    first, last, team = (f.argument(place) for place in range(1, 4))
    steps, patches, count, passed, scratch, scratch_bytes, told, at = (frame[number] for number in range(len(FRAME)))
    table, course, status = f.at(passed), f.at(at), f.at(told)
    for number in range(arrays):
        table[number] = f.at(f.argument(4 + number) + DATA)[0]
    rows = f.at(patches)
    begun = course[STOPPED].differs(0)
    with f.loop("patch", f.select(begun, f.index(0), count)) as row:
        target, which, offset = (rows[row * 3 + column] for column in range(3))
        f.at(target)[0] = table[which] + offset
    offering = _Offering(f, f.at(team), isa.pause, (scratch, scratch_bytes, at))
    offering.begin(team)
    step = f.variable(f.select(begun, course[NEXT], first))
    course[STOPPED] = f.index(0)
    _go_through(f, f.at(steps), offering, (step, first, last), (course, at, status))
    offering.end()
    f.finish()


def _go_through(
    f: Function,
    steps: Buffer,
    offering: _Offering,
    places: tuple[Variable, Value, Value],
    course_and_status: tuple[Buffer, Value, Buffer],
) -> None:
    """Do step after step, as long as there is fuel."""
    (step, first, last), (course, at, status) = places, course_and_status
    stopped, fuel = f.variable(f.index(0)), f.variable(f.index(FULL))
    with f.loop_while("step", lambda: stopped.value.equals(0) & (step.value >= first) & (step.value < last)):
        now = step.value
        kernel, arguments, tasks, parts, each, takes = (steps[now * len(STEP) + column] for column in range(len(STEP)))
        with f.either(tasks >= 0) as (work, control):
            with work:
                begin = f.variable(f.index(0))
                with f.when(each < tasks):
                    begin.value = course[TASK]
                end = f.smaller(begin.value + each, tasks)
                with f.when((begin.value < tasks) & status[0].equals(0)):
                    status[1] = now
                    offering.step(kernel, arguments, begin.value, end, parts)
                fuel.value = fuel.value - takes
                step.value = now + 1
                with f.when(each < tasks):
                    is_done = (end >= tasks) | status[0].differs(0)
                    course[TASK] = f.select(is_done, f.index(0), end)
                    step.value = f.select(is_done, now + 1, now)
            with control:
                course[NEXT], course[FUEL] = last, fuel.value
                with f.when(status[0].equals(0)):
                    f.call_at(kernel, [arguments, now, f.index(0), at])
                step.value, fuel.value = course[NEXT], course[FUEL]
        stopped.value = f.convert((fuel.value < 0) | course[OVER].differs(0), INDEX)
    is_among = (step.value >= first) & (step.value < last)
    with f.when(stopped.value.differs(0) & (is_among | course[OVER].differs(0))):
        course[STOPPED], course[NEXT], course[FUEL] = f.index(1), step.value, fuel.value


class _Offering:
    """How the thread that goes through the steps has others help."""

    def __init__(self, f: Function, team: Buffer, pause: tuple[Any, ...], own: tuple[Value, Value, Value]) -> None:
        """``own``: of the frame, what is in the second line of the team."""
        self._f, self._team, self._pause, self._own = f, team, pause, own
        self._is_ours = f.variable(f.index(0))

    def begin(self, team: Value) -> None:
        """Have the helpers for this run, if nobody else has them."""
        f = self._f
        with f.when(team.differs(0)):
            self._is_ours.value = 1 - self._team.at(RUNS).exchange_shared(f.index(1))
            with f.when(self._is_ours.value.differs(0)):
                self._team[SCRATCH], self._team[SCRATCH_BYTES], self._team[COURSE] = self._own

    def end(self) -> None:
        """Let others have them."""
        with self._f.when(self._is_ours.value.differs(0)):
            self._team.at(RUNS).write_shared(self._f.index(0))

    def step(self, kernel: Value, arguments: Value, begin: Value, end: Value, parts: Value) -> None:
        """Do some tasks of a step, with helpers or without."""
        f, (scratch, _, course) = self._f, self._own
        with f.either((parts > 1) & self._is_ours.value.differs(0)) as (shared, alone):
            with shared:
                self._share(kernel, arguments, begin, end, parts)
            with alone:
                f.call_at(kernel, [arguments, begin, end, scratch, course])

    def _share(self, kernel: Value, arguments: Value, begin: Value, end: Value, parts: Value) -> None:
        f, team = self._f, self._team
        if _TELLS_PROCESSOR:
            team[PROCESSOR] = _processor(f, _TELLS_PROCESSOR)
        team[KERNEL], team[ARGUMENTS], team[BEGIN], team[END] = kernel, arguments, begin, end
        done, waits = team.at(DONE), _Waits(f, self._pause)
        done[0] = f.index(0)
        team.write_shared((parts << _PARTS_AT) + 1)
        _do(f, team, f.index(0), parts)
        own = f.variable(f.index(1))
        with f.loop_while("others", lambda: done.read_shared() < parts - own.value):
            left = (team.read_shared() & _TAKEN) < parts
            with f.when(left):
                part = team.add_shared(f.index(1)) & _TAKEN
                with f.when(part < parts):
                    _do(f, team, part, parts)
                    own.value = own.value + 1
            with f.when(~left):
                waits.once()


_TAKEN: Final = (1 << _PARTS_AT) - 1


_TELLS_PROCESSOR: Final = {"linux": "sched_getcpu", "win32": "GetCurrentProcessorNumber"}.get(sys.platform)
"""The function of the system that says which processor a thread runs on; ``None`` where it has none, as macOS."""

_GIVES_WAY: Final = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
"""The function of the system that lets somebody else run."""


def _processor(f: Function, tells: str) -> Value:
    """The number of the processor that this thread runs on."""
    return f.convert(f.call_library(tells), INDEX)


def _do(f: Function, team: Buffer, part: Value, parts: Value) -> None:
    """Do one part of the step that is offered."""
    begin, count = team[BEGIN], team[END] - team[BEGIN]
    first, last = (begin + count * one // parts for one in (part, part + 1))
    scratch = team[SCRATCH] + part * team[SCRATCH_BYTES]
    f.call_at(team[KERNEL], [team[ARGUMENTS], first, last, scratch, team[COURSE]])


class _Waits:
    """How a thread waits. ``given_way``: how often it has let the system run somebody else."""

    def __init__(self, f: Function, pause: tuple[Any, ...]) -> None:
        self._f, self._pause = f, pause
        self.spins = f.variable(f.index(0))
        self.given_way = f.variable(f.index(0))

    def begin(self) -> None:
        """Wait from now on."""
        self.spins.value = self.given_way.value = self._f.index(0)

    def once(self) -> None:
        """Wait for some nanoseconds, or let somebody else run."""
        f = self._f
        f.pause(*self._pause)
        self.spins.value = self.spins.value + 1
        with f.when((self.spins.value % SPINS).equals(0)):
            self.give_way()

    def give_way(self) -> None:
        """Let somebody else run."""
        self.given_way.value = self.given_way.value + 1
        self._f.call_library(_GIVES_WAY)


def _is_in_the_way(f: Function, team: Buffer) -> Value:
    """Whether a helper runs on the processor of the thread that it helps, which stands still meanwhile."""
    tells = _TELLS_PROCESSOR
    return team[PROCESSOR].equals(_processor(f, tells)) if tells else f.index(0).differs(0)


def _step_aside(f: Function, processors: Buffer) -> None:
    """Have the system move this thread to another processor that it may run on, if there is any.

    It would do so by itself, some thousand steps later. ``processors``: room for what it may run on, a bit each. Only
    Linux binds threads to processors for a moment without more ado.
    """
    if sys.platform != "linux" or not _TELLS_PROCESSOR:
        return
    words = PROCESSORS // 64
    place = Value(f, f.builder.ptrtoint(processors.ir, ir_type(INDEX)), INDEX)
    with f.when(f.call_library("sched_getaffinity", f.index(0), f.index(8 * words), place) > 0):
        here = _processor(f, _TELLS_PROCESSOR)
        bit = f.index(1) << (here % 64)
        processors[here // 64] = processors[here // 64] & ~bit
        others: Value = f.index(0)
        for word in range(words):
            others = others | processors[word]
        with f.when(others.differs(0)):
            f.call_library("sched_setaffinity", f.index(0), f.index(8 * words), place)
            processors[here // 64] = processors[here // 64] | bit
            f.call_library("sched_setaffinity", f.index(0), f.index(8 * words), place)


def write_helper(module: Any, name: str, isa: Isa) -> None:
    """``name(team, number)`` takes parts of what is offered, until there was nothing for a while."""
    f = Function(module, name, isa, [POINTER, INDEX])
    team, own = f.buffer(0, INDEX), f.buffer(0, INDEX).at(FIRST_HELPER + f.argument(1) * LINE_WORDS)
    own.write_shared(f.index(HELPS))
    waits, processors = _Waits(f, isa.pause), f.own(INDEX, PROCESSORS // 64)
    with f.loop_while("help", lambda: waits.given_way.value < PATIENCE):
        offer = team.read_shared()
        something = (offer & _TAKEN) < (offer >> _PARTS_AT)
        with f.when((something | (waits.spins.value % GLANCES).equals(0)) & _is_in_the_way(f, team)):
            _step_aside(f, processors)
            waits.give_way()
        with f.either(something & ~_is_in_the_way(f, team)) as (helps, idles):
            with helps:
                taken = team.add_shared(f.index(1))
                part, parts = taken & _TAKEN, taken >> _PARTS_AT
                with f.when(part < parts):
                    _do(f, team, part, parts)
                    team.at(DONE).add_shared(f.index(1))
                waits.begin()
            with idles:
                waits.once()
        with f.when((waits.given_way.value >= PATIENCE) & team.at(RUNS).read_shared().differs(0)):
            waits.begin()
    own.write_shared(f.index(0))
    f.finish()


def code_of_executor(isa: Isa, arrays: int) -> Code:
    """The executor that takes so many arrays."""
    name = f"run_{arrays}"
    key = key_of_code(write_executor, f"{arrays} {DATA}", isa)
    return Code(key, name, lambda module: write_executor(module, name, isa, arrays))


def code_of_helper(isa: Isa) -> Code:
    """What a thread calls that helps."""
    return Code(key_of_code(write_helper, "", isa), "help", lambda module: write_helper(module, "help", isa))
