"""The arrays that a run gives to its caller.

The system clears every page that it hands out when it is touched first, which takes longer than to write a tensor
there. So a large output lies in memory of ours, which is used again once nobody holds it any more: neither the array,
nor a view on it, nor anything else that keeps one of these.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_cpu.aligned import ALIGNMENT
from tract_cpu.native.objects import address_of, counts_holders

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

LARGE: Final = 1 << 16
"""From how many bytes on outputs lie in memory of ours; what is smaller seldom goes back to the system when freed."""

_MOST_KEPT: Final = 2
"""Pieces of memory for an output: callers often hold the result of the last turn until they have the next one."""


class Output:
    """One output. Used by one state at a time. ``is_large``: whether it lies in memory of ours."""

    __slots__ = ("_dtype", "_pieces", "_shape", "_size", "is_large")

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self._shape, self._dtype, self._size = tuple(shape), dtype, prod(shape) * dtype.itemsize
        self._pieces: list[Array] = []
        self.is_large = counts_holders() and self._size >= LARGE and not dtype.hasobject

    def array(self) -> Array:
        """An array that nobody else holds, with any content. Raises MemoryError."""
        if not self.is_large:
            return np.empty(self._shape, self._dtype)
        piece = self._free_piece()
        found: Array = np.ndarray(self._shape, self._dtype, piece, -address_of(piece) % ALIGNMENT)
        return found

    def _free_piece(self) -> Array:
        pieces = self._pieces
        for place in range(len(pieces)):
            if sys.getrefcount(pieces[place]) == _HELD_BY_US:
                return pieces[place]
        if len(pieces) == _MOST_KEPT:
            del pieces[0]  # whoever holds it keeps it
        pieces.append(np.empty(self._size + ALIGNMENT, np.uint8))
        return pieces[-1]


def _held_by_us() -> int:
    """What Python counts for an object that only a list holds."""
    alone = [np.empty(1)]
    return sys.getrefcount(alone[0])


_HELD_BY_US: Final = _held_by_us()
