"""Where tensors are: pieces of memory, and views on them with strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tract_core.dims import Dim, is_one
from tract_cpu.language.types import ElementType


class Kind(Enum):
    """Whose memory it is."""

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


@dataclass(frozen=True, slots=True)
class Storage:
    """One piece of memory. ``number``: which one among those of its kind."""

    kind: Kind
    number: int


@dataclass(frozen=True, slots=True)
class Address:
    """A place in memory. ``offset``: in bytes, from the begin of the storage."""

    storage: Storage
    offset: Dim = 0


@dataclass(frozen=True, slots=True)
class View:
    """A tensor in memory. ``strides``: in elements, per axis, 0 along axes that repeat; ``offset``: in elements."""

    storage: Storage
    element: ElementType
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim = 0

    @staticmethod
    def contiguous(storage: Storage, element: ElementType, shape: Sequence[Dim]) -> View:
        """A tensor without gaps, the last axis innermost."""
        return View(storage, element, tuple(shape), contiguous_strides(shape))

    @property
    def address(self) -> Address:
        """Of the first element."""
        return Address(self.storage, self.offset * self.element.bytes)

    @property
    def is_contiguous(self) -> bool:
        """Whether it surely has no gaps."""
        wanted = contiguous_strides(self.shape)
        pairs = zip(self.shape, self.strides, wanted, strict=True)
        return all(is_one(size) or stride == right for size, stride, right in pairs)

    def shaped(self, shape: Sequence[Dim]) -> View | None:
        """The same elements in another shape, where that needs no copy for sure."""
        if not self.is_contiguous:
            return None
        return replace(self, shape=tuple(shape), strides=contiguous_strides(shape))

    def transposed(self, order: Sequence[int]) -> View:
        """With its axes in another order."""
        return replace(
            self, shape=tuple(self.shape[one] for one in order), strides=tuple(self.strides[one] for one in order)
        )

    def stretched(self, shape: Sequence[Dim]) -> View | None:
        """Seen in a larger shape of the same rank; ``None`` where a size may or may not have to stretch."""
        strides: list[Dim] = []
        for size, stride, wanted in zip(self.shape, self.strides, shape, strict=True):
            if size != wanted and not is_one(size):
                return None
            strides.append(0 if is_one(size) else stride)
        return replace(self, shape=tuple(shape), strides=tuple(strides))


def contiguous_strides(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """How far apart the elements along each axis are in a tensor without gaps, in elements."""
    strides: list[Dim] = []
    step: Dim = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))
