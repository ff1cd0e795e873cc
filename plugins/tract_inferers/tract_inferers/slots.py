"""The inputs and outputs of a policy for one agent: names, shapes without the axis of agents, element types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from operator import index
from typing import Any, Final, TypeAlias

import numpy as np

from tract_core.errors import InputError
from tract_core.frozen import frozen

Shape: TypeAlias = tuple[int, ...]

F32: Final[np.dtype[Any]] = np.dtype(np.float32)


@frozen
class Slot:
    """One input or output of a policy, for one agent.

    ``shape``: without the axis of agents. ``dtype``: the type of the elements, or what NumPy makes one of. In a loop,
    or taken apart, a slot is the pair of its name and its shape: ``for name, shape in inferer.input_shapes()``. Raises
    InputError for what is no name, shape or type.
    """

    name: str
    shape: Shape
    dtype: np.dtype[Any] = F32

    def __post_init__(self) -> None:
        shape: Any = self.shape
        try:
            sizes, dtype = tuple(map(index, shape)), np.dtype(self.dtype)
        except TypeError as error:
            raise InputError(f"no shape and element type: {error}", where=f"slot {self.name!r}") from None
        if not isinstance(self.name, str) or any(size < 0 for size in sizes):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"wanted a name and sizes from 0, got {self.name!r} and {sizes}", where="slot")
        object.__setattr__(self, "shape", sizes)
        object.__setattr__(self, "dtype", dtype)

    def __iter__(self) -> Iterator[Any]:
        yield self.name
        yield self.shape

    def __str__(self) -> str:
        return f"{self.name}: {','.join(map(str, [*self.shape, self.dtype.name]))}"

    @property
    def count(self) -> int:
        """Elements for one agent."""
        return prod(self.shape)

    def empty(self, rows: int) -> np.ndarray[Any, Any]:
        """An array for so many agents, shape ``(rows, *shape)``, with anything in it."""
        return np.empty((rows, *self.shape), self.dtype)

    def zeros(self, rows: int) -> np.ndarray[Any, Any]:
        """An array for so many agents, shape ``(rows, *shape)``, of zeros."""
        return np.zeros((rows, *self.shape), self.dtype)


Slots: TypeAlias = Sequence[Slot]


def as_slots(shapes: Sequence[Any]) -> Slots:
    """What an inferer says of its inputs or outputs, as slots; a plain pair of name and shape is one of f32."""
    for one in shapes:
        if one.__class__ is not Slot:
            return tuple(one if isinstance(one, Slot) else _of_pair(one) for one in shapes)
    return shapes


def _of_pair(pair: Any) -> Slot:
    try:
        name, shape = pair
    except (TypeError, ValueError):
        raise InputError(f"wanted a Slot, or a pair of a name and a shape, got {pair!r:.60}", where="slot") from None
    return Slot(name, shape)


def position(slots: Iterable[Slot], name: str) -> int | None:
    """Where the slot of that name is; ``None`` where there is none."""
    return next((number for number, slot in enumerate(slots) if slot.name == name), None)


def listed(slots: Iterable[Slot]) -> str:
    """Slots in a text, as ``obs: 64,float32; noise: 8,float32``."""
    return "; ".join(map(str, slots)) or "none"
