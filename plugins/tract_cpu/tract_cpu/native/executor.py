"""The native function that runs a program: it goes through a table of steps and calls the kernel of each.

So one call from Python runs all native steps between two that are left to the host, and no code is made for a single
model but for its kernels, which other models share.

The table is an array of integers: a row per step, with the address of its kernel, that of its arguments, and its number
of tasks. Addresses that change from run to run (those of inputs and outputs) come out of a second table: for each,
where in the arguments it belongs, which of the passed addresses it is, and the offset in bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import cache
from typing import Any, Final

from tract_cpu.isa import Isa
from tract_cpu.language.function import POINTER, Function
from tract_cpu.language.types import INDEX
from tract_cpu.language.values import Value
from tract_cpu.native.cache import key_of
from tract_cpu.native.library import Library

FRAME: Final = ("steps", "patches", "patch_count", "passed", "scratch")
"""What a frame holds, an array of integers: addresses of the tables, how many rows the second has, and of memory."""

MOST_ARRAYS: Final = 8
"""With up to so many arrays, their addresses are found by native code."""

DATA_OFFSET: Final = object.__basicsize__
"""Where in an object of type ``numpy.ndarray`` the address of its elements is, in bytes: the first field of its own."""


def write_executor(module: Any, name: str, isa: Isa, arrays: int) -> None:
    """``name(frame, first, last, array, ...)`` runs the steps from ``first`` to before ``last``.

    ``array``: the arrays of NumPy, by the addresses of the objects, whose elements are passed, in order.
    """
    f = Function(module, name, isa, [POINTER, INDEX, INDEX, *[INDEX] * arrays])
    frame = f.buffer(0, INDEX)
    steps, patches, count, passed, scratch = (frame[number] for number in range(len(FRAME)))
    table = _at(f, passed)
    for number in range(arrays):
        table[number] = _at(f, f.argument(3 + number) + DATA_OFFSET)[0]
    rows = _at(f, patches)
    with f.loop("patch", count) as row:
        target, which, offset = (rows[row * 3 + column] for column in range(3))
        _at(f, target)[0] = table[which] + offset
    kernels = _at(f, steps)
    with f.loop("step", f.argument(2), f.argument(1)) as step:
        kernel, arguments, tasks = (kernels[step * 3 + column] for column in range(3))
        f.call_at(kernel, [arguments, f.index(0), tasks, scratch])
    f.finish()


def _at(f: Function, address: Value) -> Any:
    from tract_cpu.language.buffers import Buffer

    return Buffer(f, f.builder.inttoptr(address.ir, POINTER), INDEX)


@cache
def executor(library: Library, sources: str, arrays: int) -> Callable[..., None]:
    """The executor that takes so many arrays, which can be called from Python. It gives up the interpreter's lock."""
    name = f"run_{arrays}"
    key = key_of(f"executor {arrays} {DATA_OFFSET}", library.isa, sources)
    address = library.address(key, name, lambda module: write_executor(module, name, library.isa, arrays))
    kind: Any = CFUNCTYPE(None, c_void_p, c_int64, c_int64, *[c_void_p] * arrays)
    return kind(address)
