"""Kernels on arrays, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tract_cuda.ptx import Ptx
from tract_cuda.testing.emulator.emulator import Emulator
from tract_cuda.testing.emulator.errors import EmulationError
from tract_cuda.testing.emulator.launch import Range

Array = NDArray[Any]
ORDERS: Final = (0, 1, 7)
_ALIGNMENT: Final = 256


def run(
    ptx: Ptx,
    grid: Sequence[int] | int,
    arguments: Sequence[Array | int | float],
    *,
    orders: Sequence[int] = ORDERS,
    emulator: Emulator | None = None,
) -> list[Array]:
    """The arrays after a kernel ran, in the order of the arguments; those that were passed stay as they are.

    It runs once in each order, on copies. ``emulator``: that of the kernel's text, if it is there already. Raises
    EmulationError where it does what it may not, and where orders give other results.
    """
    found = emulator or Emulator(ptx.text)
    sizes = (grid,) if isinstance(grid, int) else grid
    results = [_once(found, ptx, sizes, arguments, order) for order in orders]
    for order, result in zip(orders, results, strict=True):
        for place, (one, first) in enumerate(zip(result, results[0], strict=True)):
            if one.tobytes() != first.tobytes():
                raise EmulationError(
                    f"array {place} is another one in order {order} than in order {orders[0]}",
                    where=f"kernel '{ptx.name}'",
                )
    return results[0]


def _once(
    emulator: Emulator, ptx: Ptx, grid: Sequence[int], arguments: Sequence[Array | int | float], order: int
) -> list[Array]:
    arrays, passed, memory = list[Array](), list[int | float](), list[Range]()
    for one in arguments:
        if not isinstance(one, np.ndarray):
            passed.append(one)
            continue
        copy = aligned(one)
        arrays.append(copy)
        passed.append(copy.ctypes.data)
        memory.append(Range(copy.ctypes.data, copy.nbytes))
    emulator.launch(ptx.name, grid, (ptx.threads,), ptx.shared_bytes, passed, memory=memory, order=order)
    return arrays


def aligned(array: Array) -> Array:
    """A copy that begins where allocations of a device do."""
    raw = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    begin = -raw.ctypes.data % _ALIGNMENT
    copy = raw[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
