"""The native functions that run a program: one goes through a table of steps and calls the kernel of each.

So one call from Python runs all native steps between two that are left to the host, and no code is made for a single
model but for its kernels, which other models share.

The table is an array of integers: a row per step (`STEP`), with the address of its kernel, that of its arguments, and
its number of tasks. Addresses that change from run to run (those of inputs and outputs) come out of a second table: for
each, where in the arguments it belongs, which of the passed addresses it is, and the offset in bytes.

A step with a negative number of tasks says which step is next (`tract_cpu.kernels.control`): so there are loops and
branches.

The thread that is called goes through the steps alone. Where a step has several parts, it offers them to whoever helps,
takes one after the other itself, and waits for those that somebody else has taken: never for a thread that has not come
yet, or that the system has put to sleep. Helpers know nothing of steps; they take what is offered, in a function of
their own, which they leave when nothing was for a while.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import cache
from typing import Any, Final

FRAME: Final = ("steps", "patches", "patch_count", "passed", "scratch", "scratch_bytes", "status", "course")
"""What a frame holds, an array of integers: addresses of the tables, how many rows the second has, memory for each
part of a step, how many bytes that is, where kernels say that they cannot do their work, and where steps say which one
is next."""

STEP: Final = ("kernel", "arguments", "tasks", "parts", "each", "fuel")
"""What a row of the first table says of a step.

The addresses of its kernel and of its arguments; how many tasks it has; in how many parts these are shared with other
threads; how many tasks are done between two looks at the fuel, and how much of that they take.
"""

MOST_ARRAYS: Final = 8
"""With up to so many arrays, their addresses are found by native code."""

LINE_WORDS: Final = 8
"""Integers that a line of the cache holds. What one thread writes and others read lies in a line of its own."""

SPINS: Final = 4096
"""How often a thread looks whether something has happened before it lets the system run somebody else."""

PATIENCE: Final = 2
"""How often it does that, outside of runs, before it goes back to sleep: some hundred microseconds in all."""

GLANCES: Final = 64
"""How often a helper looks before it makes sure that it takes no time from the thread that it wants to help."""

PROCESSORS: Final = 1 << 10
"""Of how many processors the system can say which ones a thread may run on."""

OFFER, DONE, KERNEL, ARGUMENTS, BEGIN, END, PROCESSOR = range(LINE_WORDS - 1)
"""The first line of the memory of a team: in how many parts a step is offered and how many are taken, as one integer;
how many helpers have done; what to do, from which task to before which one; and on which processor the thread is that
offers it, where the system tells."""

RUNS, SCRATCH, SCRATCH_BYTES, COURSE = range(LINE_WORDS, LINE_WORDS + 4)
"""The second line, which stays the same in a run: whether somebody offers anything, and of what is in the frame, what
helpers need."""

FIRST_HELPER: Final = 2 * LINE_WORDS
"""Lines of their own: for each helper, 0 while it sleeps, `TOLD` since it was told to wake up, then `HELPS`."""

TOLD, HELPS = 1, 2

NEXT, STOPPED, TASK, FUEL, OVER = range(5)
"""The integers that say how a run goes on.

Which step is next, which steps of loops and branches tell. Whether a call has ended before all was done, with which
task of the next step it goes on then, and how much fuel there was when it ended. And whether the run has to end as soon
as it can, which another thread says: then nothing that it writes counts.
"""

FULL: Final = 1 << 30
"""How much fuel one call has: some tenths of a second, before whoever called may look at the clock.

A multiplication and addition takes one of it, and whatever takes a processor longer, as much more.
"""


@cache
def executor(address: int, arrays: int) -> Callable[..., None]:
    """The executor at an address, which takes so many arrays, for calls from Python. It gives up the lock."""
    kind: Any = CFUNCTYPE(None, c_void_p, c_int64, c_int64, c_void_p, *[c_void_p] * arrays)
    return kind(address)


@cache
def helper(address: int) -> Callable[[int, int], None]:
    """What a thread calls to help a team, by the address of its memory, under its own number. It gives up the lock."""
    kind: Any = CFUNCTYPE(None, c_void_p, c_int64)
    return kind(address)
