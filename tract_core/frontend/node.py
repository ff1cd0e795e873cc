"""How rows of all frontends ask for what a file says of one operator: its attributes and inputs, with their defaults.

A format says how one attribute, and one input, is found. What can be asked for, and the errors, are the same for all:

    axis = node.axis("axis", wire.rank(x), -1)
    mode = node.choice("mode", ("linear", "nearest"), "nearest")
    bias = wire.optional_tensor(2)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from typing import ClassVar, Final, Generic, TypeVar

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import CorruptModel, ModelError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired

T = TypeVar("T")
Choice = TypeVar("Choice", bound=Enum)
Slot = TypeVar("Slot", bound=int | str)


@frozen
class AttributeKind(Generic[T]):
    """What an attribute can be asked for as. ``text``: what errors call it."""

    text: str

    __eq__ = object.__eq__  # a kind is itself alone, and a key of tables
    __hash__ = object.__hash__


INTEGER: Final = AttributeKind[int]("an integer")
INTEGERS: Final = AttributeKind[tuple[int, ...]]("integers")
NUMBER: Final = AttributeKind[float]("a number")
NUMBERS: Final = AttributeKind[tuple[float, ...]]("numbers")
TEXT: Final = AttributeKind[str]("a text")
TEXTS: Final = AttributeKind[tuple[str, ...]]("texts")
FLAG: Final = AttributeKind[bool]("true or false")
SIZE: Final = AttributeKind[Dim]("a size")
SIZES: Final = AttributeKind[tuple[Dim, ...]]("sizes")
ELEMENT_TYPE: Final = AttributeKind[DatumType]("an element type")


class Attributes(ABC):
    """The attributes of one operator, by name; ``word``: what the format calls them.

    A getter returns the attribute, or the default, when one is given, for an attribute that is absent. It raises
    ModelError when the attribute is of another kind, and CorruptModel when it is absent and there is no default.
    """

    __slots__ = ()
    word: ClassVar[str] = "attribute"

    # --- what a format says ---

    @property
    @abstractmethod
    def operator(self) -> str:
        """What the file calls the operator."""

    @property
    @abstractmethod
    def names(self) -> Collection[str]:
        """The attributes that the file gives."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether the file gives that attribute."""

    @abstractmethod
    def find(self, name: str, kind: AttributeKind[T]) -> T | None:
        """An attribute as one of a kind; ``None`` for one that is absent. Raises ModelError for one of another kind."""

    # --- what a row asks ---

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer."""
        return self._get(name, INTEGER, default)

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Integers."""
        return self._get(name, INTEGERS, None if default is None else tuple(default))

    def each(self, name: str, count: int, default: int | None = None) -> tuple[int, ...]:
        """An integer for each of ``count`` things, as is the default. Raises CorruptModel for more or fewer of them."""
        found = self.integers(name, None if default is None else (default,) * count)
        if len(found) != count:
            raise self.misfit(name, f"has {len(found)} entries", f"{count}")
        return found

    def number(self, name: str, default: float | None = None) -> float:
        """A floating-point number."""
        return self._get(name, NUMBER, default)

    def numbers(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """Floating-point numbers."""
        return self._get(name, NUMBERS, None if default is None else tuple(default))

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        return self._get(name, TEXT, default)

    def texts(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """Texts."""
        return self._get(name, TEXTS, None if default is None else tuple(default))

    def choice(self, name: str, choices: Iterable[str], default: str | None = None) -> str:
        """A text that is one of ``choices``. Raises Unsupported for another one."""
        value, known = self.text(name, default), tuple(choices)
        if value not in known:
            raise self.misfit(name, f"is {value[:80]!r}", f"one of {', '.join(map(repr, known))}", Unsupported)
        return value

    def member(self, name: str, kind: type[Choice], default: Choice | None = None) -> Choice:
        """A member of an enumeration of texts. Raises Unsupported for another text."""
        return kind(self.choice(name, [one.value for one in kind], default and default.value))

    def flag(self, name: str, default: bool = False) -> bool:
        """Yes or no."""
        return self._get(name, FLAG, default)

    def dim(self, name: str, default: Dim | None = None) -> Dim:
        """A size, which may have symbols in it."""
        return self._get(name, SIZE, default)

    def dims(self, name: str, default: Sequence[Dim] | None = None) -> tuple[Dim, ...]:
        """Sizes."""
        return self._get(name, SIZES, None if default is None else tuple(default))

    def element_type(self, name: str, default: DatumType | None = None) -> DatumType:
        """An element type."""
        return self._get(name, ELEMENT_TYPE, default)

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """The axis of a tensor of ``rank`` axes, counted from the front; the file may count from the end.

        Raises FactError for one outside.
        """
        return NodeWiring.axis(self.integer(name, default), rank)

    def axes(self, name: str, rank: int, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Several of these. Raises FactError for one outside, and for one that is there twice."""
        return tuple(NodeWiring.axes(self.integers(name, default), rank))

    def _get(self, name: str, kind: AttributeKind[T], default: T | None) -> T:
        found = self.find(name, kind)
        if found is not None:
            return found
        if default is None:
            raise self.missing(name)
        return default

    # --- what is wrong ---

    def about(self, name: str) -> str:
        """What errors call an attribute."""
        return f"{self.word} {name!r} of {self.operator}"

    def misfit(self, name: str, found: str, wanted: str, error: type[ModelError] = CorruptModel) -> ModelError:
        """The error of an attribute that ``is 3``, or ``has 3 entries``, where something else is wanted."""
        return error(f"{self.about(name)} {found}, wanted {wanted}")

    def missing(self, name: str) -> ModelError:
        """The error of an attribute that is absent."""
        there = ", ".join(map(repr, self.names)) or f"no {self.word}s"
        return CorruptModel(f"{self.operator} wants an {self.word} {name!r}, the node has {there}")


class Inputs(ABC, Generic[Slot]):
    """The tensors that one operator reads, by their numbers or names."""

    @property
    @abstractmethod
    def wiring(self) -> NodeWiring:
        """What adds the operator's nodes."""

    @abstractmethod
    def input(self, slot: Slot) -> OutletId:
        """An input that must be there. Raises ModelError when it is not."""

    @abstractmethod
    def optional_input(self, slot: Slot) -> OutletId | None:
        """An input that may be left out."""

    def tensor(self, slot: Slot) -> Wired:
        """An input that must be there, for arithmetic. Raises ModelError when it is not."""
        return Wired(self.wiring, self.input(slot))

    def optional_tensor(self, slot: Slot) -> Wired | None:
        """An input that may be left out, for arithmetic."""
        found = self.optional_input(slot)
        return None if found is None else Wired(self.wiring, found)
