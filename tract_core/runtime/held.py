"""How much memory the tensors take that a run holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from tract_core.limits import Room
    from tract_core.plugins.keys import Array

_ARRAY: Final[Any] = np.ndarray


def owner_of(array: Array) -> Any:
    """Whose memory an array is: an array, or what is none and lends its memory."""
    found: Any = array
    while isinstance(found, _ARRAY) and found.base is not None:
        found = found.base
    return found


def owners_of(arrays: Iterable[Array]) -> frozenset[int]:
    """The ids of whose memory arrays are."""
    return frozenset(id(owner_of(array)) for array in arrays)


class Held:
    """The tensors of one run. Each piece of memory counts once, whatever views there are on it.

    What is a view on an input, on a constant, or on memory that no array owns, does not count.
    """

    __slots__ = ("_counts", "_others", "_room")

    def __init__(self, room: Room, *others: frozenset[int]) -> None:
        """``others``: the ids of the owners of inputs and constants, which last as long as the run does."""
        self._room, self._others = room, others
        self._counts: dict[int, int] = {}

    def take(self, array: Array) -> None:
        """The run holds a tensor."""
        owner = owner_of(array)
        if not isinstance(owner, _ARRAY) or any(id(owner) in one for one in self._others):
            return
        count = self._counts.get(id(owner), 0)
        self._counts[id(owner)] = count + 1
        if not count:
            self._room.taken += owner.nbytes

    def let_go(self, array: Array) -> None:
        """The run does not hold a tensor any more."""
        owner = owner_of(array)
        count = self._counts.get(id(owner), 0)
        if count > 1:
            self._counts[id(owner)] = count - 1
        elif count:
            del self._counts[id(owner)]
            self._room.taken -= owner.nbytes
