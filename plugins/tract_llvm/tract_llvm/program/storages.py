"""Pieces of memory, and places in them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.dims import Dim


class Kind(Enum):
    """Whose memory it is."""

    __hash__ = object.__hash__  # that of an Enum looks up its name each time

    INPUT = "input"
    """An array that the caller gives."""
    OUTPUT = "output"
    """An array that the caller gets."""
    CONSTANT = "constant"
    """An array of the program, which nobody writes to."""
    ARENA = "arena"
    """A part of the arena of a state, used again once nobody reads it any more."""
    HOST = "host"
    """An array that an operator gave which the node executor of the core runs."""
    KEPT = "kept"
    """An array of a state, which stays from turn to turn."""
    STATUS = "status"
    """Two numbers: in the first, a kernel says that it cannot do its work; in the second is the step that ran last."""


@frozen
class Storage:
    """One piece of memory. ``number``: which one among those of its kind."""

    kind: Kind
    number: int


def storage_text(storage: Storage) -> str:
    """A piece of memory, by its kind and its number."""
    return f"{storage.kind.value}[{storage.number}]"


NOWHERE: Final = Storage(Kind.ARENA, -1)
"""The storage of views of which only shape and type count."""


@frozen
class Address:
    """A place in memory. ``offset``: in bytes, from the begin of the storage."""

    storage: Storage
    offset: Dim = 0
