"""The native function that runs a program: it goes through a table of steps and calls the kernel of each.

So one call from Python runs all native steps between two that are left to the host, and no code is made for a single
model but for its kernels, which other models share.

The table is an array of integers: a row per step, with the address of its kernel, that of its arguments, and its number
of tasks. Addresses that change from run to run (those of inputs and outputs) come out of a second table: for each,
where in the arguments it belongs, which of the passed addresses it is, and the offset in bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
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

FRAME: Final = ("steps", "patches", "patch_count", "passed", "scratch", "scratch_bytes", "meeting", "status")
"""What a frame holds, an array of integers: addresses of the tables, how many rows the second has, memory for each
thread, how many bytes that is, where threads meet, and where kernels say that they cannot do their work."""

MOST_ARRAYS: Final = 8
"""With up to so many arrays, their addresses are found by native code."""

DATA_OFFSET: Final = object.__basicsize__
"""Where in an object of type ``numpy.ndarray`` the address of its elements is, in bytes: the first field of its own."""

LINE: Final = 8
"""Integers that a line of the cache holds. What one thread writes and others read lies in a line of its own."""

SPINS: Final = 4096
"""How often a thread looks whether the others are there before it lets the system run somebody else."""


def write_executor(module: Any, name: str, isa: Isa, arrays: int) -> None:
    """``name(frame, first, last, thread, threads, array, ...)`` runs the steps from ``first`` to before ``last``.

    Each of ``threads`` threads calls it, with its number; they meet after every step. Behind one that refuses, nothing
    is done. ``array``: the arrays of NumPy, by the addresses of the objects, whose elements are passed, in order; only
    thread 0 looks at them.
    """
    f = Function(module, name, isa, [POINTER, INDEX, INDEX, INDEX, INDEX, *[INDEX] * arrays])
    frame = f.buffer(0, INDEX)
    first, last, thread, threads = (f.argument(place) for place in range(1, 5))
    steps, patches, count, passed, scratch, scratch_bytes, meeting, told = (
        frame[number] for number in range(len(FRAME))
    )
    barrier = _Barrier(f, f.at(meeting), threads, isa.pause)
    with f.when(thread.equals(0)):
        table = f.at(passed)
        for number in range(arrays):
            table[number] = f.at(f.argument(5 + number) + DATA_OFFSET)[0]
        rows = f.at(patches)
        with f.loop("patch", count) as row:
            target, which, offset = (rows[row * 3 + column] for column in range(3))
            f.at(target)[0] = table[which] + offset
    barrier.meet()
    kernels, status = f.at(steps), f.at(told)
    own = scratch + thread * scratch_bytes
    with f.loop("step", last, first) as step:
        kernel, arguments, tasks = (kernels[step * 3 + column] for column in range(3))
        begin, end = tasks * thread // threads, tasks * (thread + 1) // threads
        with f.when((begin < end) & status[0].equals(0)):
            status[1] = step
            f.call_at(kernel, [arguments, begin, end, own])
        barrier.meet()
    f.finish()


class _Barrier:
    """Where threads wait for each other: the last one to come ends the round, which the others see.

    The two integers, how many are there and which round it is, lie in lines of their own.
    """

    def __init__(self, f: Function, place: Buffer, threads: Value, pause: tuple[Any, ...]) -> None:
        self._f, self._threads, self._pause = f, threads, pause
        self._arrived, self._round = place, place.at(LINE)
        self._current = f.variable(self._round.read_shared())

    def meet(self) -> None:
        """Wait for the others."""
        f = self._f
        with f.when(self._threads > 1):
            current = self._current.value
            here = self._arrived.add_shared(f.index(1)) + 1
            with f.either(here >= self._threads) as (last, others):
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


@cache
def executor(library: Library, sources: str, arrays: int) -> Callable[..., None]:
    """The executor that takes so many arrays, which can be called from Python. It gives up the interpreter's lock."""
    name = f"run_{arrays}"
    key = key_of(f"executor {arrays} {DATA_OFFSET}", library.isa, sources)
    address = library.address(Code(key, name, lambda module: write_executor(module, name, library.isa, arrays)))
    kind: Any = CFUNCTYPE(None, c_void_p, c_int64, c_int64, c_int64, c_int64, *[c_void_p] * arrays)
    return kind(address)
