"""Arrays that begin where a line of the cache does: a vector is read from one line, not from the ends of two.

NumPy's own begin in the middle of one: the system's allocator keeps sixteen bytes in front of what is large.

Weights of some megabytes are read from memory at half its speed where they lie in pages of 4 KiB, as processors look
ahead no further than a page. So what lasts lies side by side in blocks for which the system is asked for huge pages.
"""

from __future__ import annotations

import mmap
import sys
import weakref
from _thread import allocate_lock  # `threading`, which has more, is imported where threads are started
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_cpu.native.objects import address_of

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

ALIGNMENT: Final = 64
"""Bytes: a line of the cache, and a vector of the widest kind."""


def aligned(make: Callable[[int, Any], Array], shape: Sequence[int], dtype: Any) -> Array:
    """An array that ``make`` fills, as `numpy.empty`, `numpy.zeros` or `numpy.ones` with bytes."""
    size = prod(shape) * np.dtype(dtype).itemsize
    whole = make(size + ALIGNMENT, np.uint8)
    begin = -address_of(whole) % ALIGNMENT
    found: Array = whole[begin : begin + size].view(dtype).reshape(shape)
    return found


BLOCK: Final = 32 << 20
"""Bytes of a block that arrays share; what nobody writes to takes no memory."""

LARGE: Final = 64 << 10
"""From how many bytes on an array lies in a block."""

_HUGE: Final = 2 << 20
"""Bytes of a huge page, as most systems have them."""


class _Blocks:
    """Where arrays lie side by side. A block is there as long as one of its arrays is."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._block: Callable[[], mmap.mmap | None] = lambda: None
        self._used = 0

    def zeros(self, size: int) -> Array:
        """So many bytes, which nobody else has."""
        with self._lock:
            block = self._block()
            if block is None or self._used + size > len(block):
                length = max(-(-size // _HUGE) * _HUGE, BLOCK)
                block = _block(length)
                self._block, self._used = weakref.ref(block), 0
            begin = self._used
            self._used += -(-size // ALIGNMENT) * ALIGNMENT
            return np.frombuffer(block, np.uint8, size, begin)


def _block(length: int) -> mmap.mmap:
    """Memory in huge pages, as far as there are any."""
    if sys.platform != "linux":
        return mmap.mmap(-1, length)
    block = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.madvise(mmap.MADV_HUGEPAGE)
    return block


_BLOCKS: Final = _Blocks()


def lasting(shape: Sequence[int], dtype: Any) -> Array:
    """Zeros, for an array that stays and is read again and again."""
    size = prod(shape) * np.dtype(dtype).itemsize
    if size < LARGE or sys.platform != "linux":
        return aligned(np.zeros, shape, dtype)
    found: Array = _BLOCKS.zeros(size).view(dtype).reshape(shape)
    return found
