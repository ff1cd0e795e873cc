"""What is made of a file's bytes and takes memory of its own: counted while it is there, and made once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary, finalize

from tract_core.errors import LimitExceeded
from tract_core.plugins.keys import Array

T = TypeVar("T")


class Unfolded:
    """What was made of one file. ``allowed``: tells how many bytes it may take, of all that is there at one time.

    Nodes are wired again and again, and those of a function for each call: whoever reads the same part of the file gets
    the same array, as long as somebody holds it.
    """

    def __init__(self, allowed: Callable[[], int]) -> None:
        self._allowed = allowed
        self._taken = 0
        self._given_back: deque[int] = deque()
        self._arrays: WeakValueDictionary[Hashable, Array] = WeakValueDictionary()
        self._kept: dict[Hashable, tuple[Any, ...]] = {}

    def shared(self, part: Hashable, size: int, make: Callable[[], Array]) -> Array:
        """The array of ``size`` bytes that ``make`` makes of a part of the file; nobody may write to it.

        Raises LimitExceeded.
        """
        found = self._arrays.get(part)
        if found is None:
            found = self._arrays[part] = self.counted(size, make)
            found.flags.writeable = False
        return found

    def counted(self, size: int, make: Callable[[], Array]) -> Array:
        """An array of ``size`` bytes, which count until its memory is free. Raises LimitExceeded."""
        made = self._made(size, make)
        if made.base is not None:  # what is part of another array may go before the memory does
            made = made.copy()
        finalize(made, self._given_back.append, size).atexit = False
        return made

    def kept(self, part: Hashable, size: int, make: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
        """What ``make`` makes of a part of the file, and no array, so that nothing tells when it goes: it stays.

        Raises LimitExceeded.
        """
        if part not in self._kept:
            self._kept[part] = self._made(size, make)
        return self._kept[part]

    def _made(self, size: int, make: Callable[[], T]) -> T:
        while self._given_back:  # by whichever thread let go of something, and whenever
            self._taken -= self._given_back.popleft()
        taken, allowed = self._taken + size, self._allowed()
        if taken > allowed:
            raise LimitExceeded(
                f"the tensors of the file take {taken} bytes when they are unfolded, {allowed} are allowed",
                hint="a model that needs so many can be loaded with LoadLimits(max_fold_bytes=...)",
            )
        made = make()
        self._taken += size
        return made
