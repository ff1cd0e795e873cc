"""Turns that are like one before, as native functions that Python calls like its own.

To look at arrays from Python, to make others and to call through ctypes takes as long as a small network. This function
looks at what the caller gave, and compares it with what was checked before; it makes the outputs, and calls the
executor. Where anything is not as it was it gives ``None`` and has done nothing: then somebody looks closer, who has
the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tract_cpu.native.objects import address_of, addresses, definition, function_of

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

Repeat: TypeAlias = "Callable[..., list[Array] | None]"
"""Takes what a caller gave as inputs, and as arrays to fill, if he gave any.

Gives the outputs, or ``None``, with nothing done, where that takes a closer look. Without arguments, see `take`.
"""


def look_closer(inputs: Any = None, out: Any = None) -> None:
    """A `Repeat` that nothing is known of."""


def take(repeat: Repeat) -> bool:
    """Take the memory of such turns, if none of them is under way, and say whether it was taken.

    None begins until `give_back`: threads that hold on to the function may still call it, and get ``None``.
    """
    return repeat() is not None


def give_back(repeat: Repeat) -> None:
    """Let such turns begin again, whose memory was taken."""
    if repeat is not look_closer:
        function: Any = repeat
        function.__self__[TABLE.index("busy")] = 0


TABLE: Final = (
    *("names", "busy", "run", "frame", "steps", "team", "helpers", "sharing", "status"),
    *("passed", "lets_go", "inputs", "outputs", "rows"),
)
"""What a function has of its own, an array of integers.

Addresses of what it uses of Python; whether it is under way; the executor, its frame, and how many steps there are; the
team of those that help, how many do, and where it says whether they do (`native/sharing.py`); where kernels refuse;
where addresses of arrays are passed; whether other threads may run Python meanwhile; how many inputs and outputs there
are; and rows, one for each of these.
"""

ROW, ARRAY = 5, 4
"""The type of an array, its rank, the address of its sizes, its bytes, and the array itself while it is looked at."""


class _Table(np.ndarray[Any, Any]):
    """Integers that hold on to what they are addresses of."""

    kept: Any


def repeat_of(
    address: int, numbers: Mapping[str, int], arrays: Sequence[tuple[np.dtype[Any], Sequence[int]]], kept: Any
) -> Repeat:
    """The function for inputs and outputs of certain types and shapes.

    ``address``: of the native function; ``numbers``: what is in its table, by name; ``arrays``: inputs, then outputs;
    ``kept``: what must last as long as the function does.
    """
    table = _Table(len(TABLE) + sum(ROW + len(shape) for _, shape in arrays), np.int64)
    first_row = address_of(table) + 8 * len(TABLE)
    first_size = first_row + 8 * ROW * len(arrays)
    rows, sizes = list[int](), list[int]()
    for dtype, shape in arrays:
        rows += [id(dtype), len(shape), first_size + 8 * len(sizes), dtype.itemsize * prod(shape), 0]
        sizes += shape
    values = {"names": address_of(addresses()), "busy": 0, "rows": first_row, **numbers}
    table[:] = [*(values[name] for name in TABLE), *rows, *sizes]
    table.kept = (kept, [dtype for dtype, _ in arrays])
    function: Repeat = function_of(definition("repeat", address), table)
    return function
