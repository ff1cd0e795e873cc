"""The native function that runs a program: it goes through a table of steps and calls the kernel of each.

So one call from Python runs all native steps between two that are left to the host, and no code is made for a single
model but for its kernels, which other models share.

The table is an array of integers: a row per step, with the address of its kernel, that of its arguments, and its number
of tasks. Addresses that change from run to run (those of inputs and outputs) come out of a second table: for each,
where in the arguments it belongs, which of the passed addresses it is, and the offset in bytes.

A step with a negative number of tasks says which step is next (`tract_cpu.kernels.control`): so there are loops and
branches. Thread 0 alone calls its kernel. While the work of a loop is too small to be shared, thread 0 goes on by
itself, and the others wait behind the loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import cache
from typing import Any, Final

from tract_cpu.isa import Isa
from tract_cpu.language.buffers import Buffer
from tract_cpu.language.function import POINTER, Function
from tract_cpu.language.types import INDEX
from tract_cpu.language.values import Value
from tract_cpu.native.cache import key_of
from tract_cpu.native.library import Code, Library
from tract_cpu.native.objects import DATA

FRAME: Final = ("steps", "patches", "patch_count", "passed", "scratch", "scratch_bytes", "meeting", "status", "course")
"""What a frame holds, an array of integers: addresses of the tables, how many rows the second has, memory for each
thread, how many bytes that is, where threads meet, where kernels say that they cannot do their work, and where steps
say which one is next."""

MOST_ARRAYS: Final = 8
"""With up to so many arrays, their addresses are found by native code."""

LINE: Final = 8
"""Integers that a line of the cache holds. What one thread writes and others read lies in a line of its own."""

SPINS: Final = 4096
"""How often a thread looks whether the others are there before it lets the system run somebody else."""


def write_executor(module: Any, name: str, isa: Isa, arrays: int) -> None:
    """``name(frame, first, last, thread, threads, array, ...)`` runs the steps from ``first`` to before ``last``.

    It ends where the next step is not among these, and in the middle of a loop that goes round for long: then the same
    call goes on from there. Each of ``threads`` threads calls it, with its number; they meet after every step. Behind
    one that refuses, nothing is done. ``array``: the arrays of NumPy, by the addresses of the objects, whose elements
    are passed, in order; only thread 0 looks at them.
    """
    f = Function(module, name, isa, [POINTER, INDEX, INDEX, INDEX, INDEX, *[INDEX] * arrays])
    frame = f.buffer(0, INDEX)
    first, last, thread, threads = (f.argument(place) for place in range(1, 5))
    steps, patches, count, passed, scratch, scratch_bytes, meeting, told, course = (
        frame[number] for number in range(len(FRAME))
    )
    barrier = _Barrier(f, f.at(meeting), threads, isa.pause)
    with f.when(thread.equals(0)):
        table = f.at(passed)
        for number in range(arrays):
            table[number] = f.at(f.argument(5 + number) + DATA)[0]
        rows = f.at(patches)
        begun = _begun(f, f.at(course), first)
        with f.loop("patch", f.select(begun, f.index(0), count)) as row:
            target, which, offset = (rows[row * 3 + column] for column in range(3))
            f.at(target)[0] = table[which] + offset
    barrier.meet()
    kernels, status = f.at(steps), f.at(told)
    own = scratch + thread * scratch_bytes
    runner = _Runner(f, barrier, thread, f.at(course))
    step = runner.step
    with f.loop_while("step", lambda: runner.goes_on & (step.value >= first) & (step.value < last)):
        now = step.value
        kernel, arguments, tasks = (kernels[now * 3 + column] for column in range(3))
        with f.either(tasks >= 0) as (work, control):
            with work:
                begin, end = runner.share(tasks)
                with f.when((begin < end) & status[0].equals(0)):
                    status[1] = now
                    f.call_at(kernel, [arguments, begin, end, own])
                step.value = now + 1
                runner.meet()
            with control:
                runner.turn(kernel, [arguments, now, f.index(0), course], status[0].differs(0), last)
    runner.end()
    f.finish()


NEXT, MEETING, STOPPED, RESUME, FUEL, START, BEGUN = range(7)
"""The integers with which a step tells how it goes on.

That is the next step, and where other threads than 0 wait meanwhile, as thread 0 goes on by itself (0 where they all go
on together). A loop that has gone round for long tells that the call ends, and which step is next then. How much work
it may do before that; with which step this call began, and whether it goes on where another one stopped.
"""

FULL: Final = 1 << 30
"""How much work one call does in loops, some tenths of a second, before whoever called may look at the clock."""


def _begun(f: Function, course: Buffer, first: Value) -> Value:
    """Settle where a call begins. Gives whether it goes on where another one stopped."""
    begun = course[STOPPED].differs(0)
    course[BEGUN] = course[STOPPED]
    course[START] = f.select(begun, course[RESUME], first)
    course[STOPPED], course[FUEL] = f.index(0), f.index(FULL)
    return begun


class _Runner:
    """One thread on its way through the steps. ``step``: the one that it is at."""

    def __init__(self, f: Function, barrier: _Barrier, thread: Value, course: Buffer) -> None:
        self._f, self._barrier, self._thread, self._course = f, barrier, thread, course
        behind, start = course[MEETING], course[START]
        alone = course[BEGUN].differs(0) & behind.differs(0)
        waits = alone & thread.differs(0)
        self.step = f.variable(f.select(waits, behind, start))
        self._alone = f.variable(f.convert(alone & thread.equals(0), INDEX))
        self._stopped = f.variable(f.index(0))
        barrier.meet()  # as thread 0 changes what all have to read before
        with f.when(waits):
            self._join()

    @property
    def goes_on(self) -> Value:
        """Whether no loop told that the call ends."""
        return self._stopped.value.equals(0)

    def share(self, tasks: Value) -> tuple[Value, Value]:
        """The tasks of this thread, from the first one to before the last one."""
        f, thread, threads, alone = self._f, self._thread, self._barrier.threads, self._alone.value.differs(0)
        begin, end = tasks * thread // threads, tasks * (thread + 1) // threads
        return f.select(alone, f.index(0), begin), f.select(alone, tasks, end)

    def turn(self, kernel: Value, arguments: Sequence[Value], refused: Value, last: Value) -> None:
        """Have a kernel say which step is next. Once a step has refused, that is ``last``."""
        f, course = self._f, self._course
        with f.when(self._thread.equals(0)), f.either(refused) as (then, otherwise):
            with then:
                course[NEXT] = f.select(course[MEETING].equals(0), last, course[MEETING])
                course[MEETING] = f.index(0)
            with otherwise:
                f.call_at(kernel, arguments)
        self.meet()
        behind, following = course[MEETING], course[NEXT]
        self._stopped.value = course[STOPPED]
        self.meet()  # as thread 0 changes what all have to read before
        waits = behind.differs(0) & self._thread.differs(0)
        alone = behind.differs(0) & self._thread.equals(0)
        comes_back = self._alone.value.differs(0) & ~alone
        self.step.value = f.select(waits, behind, following)
        self._alone.value = f.convert(alone, INDEX)
        with f.when(waits | comes_back):
            self._join()

    def meet(self) -> None:
        """Wait for the others, where they do not wait for this one elsewhere."""
        with self._f.when(self._alone.value.equals(0)):
            self._barrier.meet()

    def end(self) -> None:
        """Meet those that wait."""
        with self._f.when(self._alone.value.differs(0)):
            self._join()

    def _join(self) -> None:
        """Meet again after thread 0 went on by itself, and see together whether the call ends here."""
        self._barrier.meet()
        self._stopped.value = self._course[STOPPED]
        self._barrier.meet()  # as thread 0 changes what all have to read before


class _Barrier:
    """Where threads wait for each other: the last one to come ends the round, which the others see.

    The two integers, how many are there and which round it is, lie in lines of their own.
    """

    def __init__(self, f: Function, place: Buffer, threads: Value, pause: tuple[Any, ...]) -> None:
        self._f, self.threads, self._pause = f, threads, pause
        self._arrived, self._round = place, place.at(LINE)
        self._current = f.variable(self._round.read_shared())

    def meet(self) -> None:
        """Wait for the others."""
        f = self._f
        with f.when(self.threads > 1):
            current = self._current.value
            here = self._arrived.add_shared(f.index(1)) + 1
            with f.either(here >= self.threads) as (last, others):
                with last:
                    self._arrived.write_shared(f.index(0))
                    self._round.write_shared(current + 1)
                with others:
                    spins = f.variable(f.index(0))
                    with f.loop_while("wait", lambda: self._round.read_shared().equals(current)):
                        f.pause(*self._pause)
                        spins.value = spins.value + 1
                        if sys.platform != "win32":  # whose C library has no such function
                            with f.when((spins.value % SPINS).equals(0)):
                                f.call_library("sched_yield")
            self._current.value = current + 1


def address_of_executor(library: Library, sources: str, arrays: int) -> int:
    """Where the executor is that takes so many arrays."""
    name = f"run_{arrays}"
    key = key_of(f"executor {arrays} {DATA}", library.isa, sources)
    return library.address(Code(key, name, lambda module: write_executor(module, name, library.isa, arrays)))


@cache
def executor(library: Library, sources: str, arrays: int) -> Callable[..., None]:
    """The executor that takes so many arrays, which can be called from Python. It gives up the interpreter's lock."""
    kind: Any = CFUNCTYPE(None, c_void_p, c_int64, c_int64, c_int64, c_int64, *[c_void_p] * arrays)
    return kind(address_of_executor(library, sources, arrays))
