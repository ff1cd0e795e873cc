"""What a kernel is called with, declared once: whoever calls it and whoever writes it go by the same names.

All arguments are 64-bit integers: sizes, strides and positions, or addresses of elements of a type. A `Signature` is
data, which a plan derives from its fields. `tract_cpu.program.arguments` puts values in order by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Function
from tract_llvm.language.types import INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen

Element: TypeAlias = ElementType | None
"""Of what is at the address that an argument is; ``None`` for one that is a size, a stride or a position."""


@frozen
class Size:
    """A size, a stride or a position, by its ``name``."""

    name: str

    def slots(self) -> tuple[Element, ...]:
        """What each argument is, in order."""
        return (None,)


@frozen
class Sizes:
    """``count`` sizes under one ``name``."""

    name: str
    count: int

    def slots(self) -> tuple[Element, ...]:
        """What each argument is, in order."""
        return (None,) * self.count


@frozen
class Memory:
    """The address, by its ``name``, of elements of a type."""

    name: str
    element: ElementType

    def slots(self) -> tuple[Element, ...]:
        """What each argument is, in order."""
        return (self.element,)


@frozen
class Memories:
    """Addresses of elements of these types, under one ``name``."""

    name: str
    elements: tuple[ElementType, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.elements)

    def slots(self) -> tuple[Element, ...]:
        """What each argument is, in order."""
        return self.elements


@frozen
class Each:
    """Arguments for each of several things, as for each loop, under one ``name``.

    ``rounds``: those of each thing, which may differ.
    """

    name: str
    rounds: tuple[tuple[Item, ...], ...]

    @property
    def count(self) -> int:
        """How many things there are."""
        return len(self.rounds)

    @staticmethod
    def of(name: str, count: int, *items: Item) -> Each:
        """The same arguments so many times."""
        return Each(name, (items,) * count)

    @staticmethod
    def loop(name: str, count: int, tensors: int) -> Each:
        """So many loops: the size of each, and how far so many tensors move from one round of it to the next."""
        return Each.of(name, count, Size("size"), Sizes("strides", tensors))

    def slots(self) -> tuple[Element, ...]:
        """What each argument is, in order."""
        return tuple(slot for items in self.rounds for slot in _slots(items))


Item: TypeAlias = Size | Sizes | Memory | Memories | Each

ItemT = TypeVar("ItemT", Size, Sizes, Memory, Memories, Each)


@frozen
class Signature:
    """All arguments, in order. ``rest``: what comes behind them, as many times as a step says."""

    items: tuple[Item, ...]
    rest: tuple[Item, ...] = ()

    @staticmethod
    def of(*items: Item) -> Signature:
        """Of these arguments, and no others."""
        return Signature(items)

    def slots(self) -> tuple[Element, ...]:
        """What each argument is, in order, without the rest."""
        return tuple(_slots(self.items))

    def place(self, name: str) -> int:
        """The number of the first argument of a name."""
        return _places(self.items, 0)[name][1]

    def taken(self, k: Function) -> Taken:
        """The arguments of a kernel that is being written."""
        return Taken(k, self.items, 0)


class Taken:
    """Arguments of a kernel while it is written, by name. One is read where it is asked for."""

    def __init__(self, k: Function, items: Sequence[Item], first: int) -> None:
        self._k, self._items = k, _places(items, first)

    def size(self, name: str) -> Value:
        """A size."""
        return self._number(self._found(name, Size)[1])

    def sizes(self, name: str) -> list[Value]:
        """The sizes of a name."""
        item, first = self._found(name, Sizes)
        return [self._number(first + place) for place in range(item.count)]

    def memory(self, name: str) -> Buffer:
        """The memory at an address."""
        item, place = self._found(name, Memory)
        return self._memory(item.element, place)

    def memories(self, name: str) -> list[Buffer]:
        """The memory at each address of a name."""
        item, first = self._found(name, Memories)
        return [self._memory(one, place) for place, one in enumerate(item.elements, first)]

    def each(self, name: str) -> list[Taken]:
        """The arguments of each thing."""
        item, first = self._found(name, Each)
        found: list[Taken] = []
        for items in item.rounds:
            found.append(Taken(self._k, items, first))
            first += len(list(_slots(items)))
        return found

    def _found(self, name: str, kind: type[ItemT]) -> tuple[ItemT, int]:
        item, place = self._items.get(name, (None, 0))
        if not isinstance(item, kind):
            found = ", ".join(f"{type(one).__name__} {name}" for name, (one, _) in self._items.items())
            raise TypeError(f"the kernel takes no {kind.__name__} {name}, but {found}")
        return item, place

    def _number(self, place: int) -> Value:
        return self._k.buffer(0, INDEX)[place]

    def _memory(self, element: ElementType, place: int) -> Buffer:
        return self._k.at(self._number(place)).of(element)


def _slots(items: Sequence[Item]) -> Iterator[Element]:
    for item in items:
        yield from item.slots()


def _places(items: Sequence[Item], first: int) -> dict[str, tuple[Item, int]]:
    """Each argument by its name, with its number."""
    found: dict[str, tuple[Item, int]] = {}
    for item in items:
        found[item.name] = item, first
        first += len(item.slots())
    return found
