"""Elements picked by positions that a tensor holds."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.types import I32, I64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter, sizes


def named(coordinates: int) -> tuple[Parameter, ...]:
    """What `named_place` needs: how far apart the numbers of a place are, the size of the axis of each, its stride."""
    return (Parameter("step"), *sizes("places", coordinates), *sizes("apart", coordinates))


def named_place(k: Kernel, at: Value, coordinates: int) -> tuple[Value, Value]:
    """The place that numbers name, from ``at`` on, negative ones from the end, and whether it is inside.

    It is the first place where it is not.
    """
    numbers, inside, found = k.memory("numbers"), k.index(0).equals(0), k.index(0)
    for coordinate in range(coordinates):
        number = k.convert(numbers[at + k.size("step") * coordinate], I64)
        size = k.convert(k.size(f"places{coordinate}"), I64)
        number = k.select(number < 0, number + size, number)
        inside = inside & (number >= 0) & (number < size)
        found = found + k.convert(number, k.positions) * k.size(f"apart{coordinate}")
    return k.select(inside, found, k.index(0)), inside


def refuse(k: Kernel) -> None:
    """Say that the work cannot be done."""
    k.memory("status")[0] = k.constant(1, I32)


@frozen
class GatherPlan:
    """One thread for ``lanes`` neighbours, in so many loops. ``index``: the type of positions.

    ``coordinates``: how many of them name a place. One beyond its axis is told.
    ``rank``: how many loops there are.
    """

    element: ElementType
    index: ElementType
    rank: int
    coordinates: int
    lanes: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "gather"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, three tensors in them, and what names a place."""
        tensors = (("data", self.element), ("numbers", self.index), ("result", self.element))
        along = [one for name, element in tensors for one in strided(name, element, self.rank)]
        return (*counted(self.rank), *along, *named(self.coordinates), Parameter("status", I32))

    def emit(self, k: Kernel) -> None:
        """result[i, j, ...] = data[i, j, ..., the place that numbers[i, j, ...] name]"""
        with position(k, self.rank) as at:
            offset, inside = named_place(k, place(k, "numbers", at), self.coordinates)
            with k.when(~inside):
                refuse(k)
            with k.when(inside):
                found = k.read(k.memory("data"), place(k, "data", at) + offset, self.lanes if self.lanes > 1 else 0)
                k.write(k.memory("result"), place(k, "result", at), found)


@frozen
class InsidePlan:
    """Looks whether positions are inside, where there is nothing to pick.

    ``index``: their type; ``rank``: how many loops there are; ``coordinates``: how many name a place.
    """

    index: ElementType
    rank: int
    coordinates: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "inside"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, the numbers in them, and what names a place."""
        numbers = strided("numbers", self.index, self.rank)
        return (*counted(self.rank), *numbers, *named(self.coordinates), Parameter("status", I32))

    def emit(self, k: Kernel) -> None:
        """Tell positions beyond their axes."""
        with position(k, self.rank) as at:
            _, inside = named_place(k, place(k, "numbers", at), self.coordinates)
            with k.when(~inside):
                refuse(k)
