"""What is known of tensors, as users see it."""

from __future__ import annotations

from operator import index
from types import NoneType
from typing import TYPE_CHECKING, Any

from tract_core.api.dim import Dim
from tract_core.errors import FactError
from tract_core.model import fact as core

if TYPE_CHECKING:
    from tract_core.data import DType


class Fact:
    """Element type and shape of a tensor. Immutable."""

    __slots__ = ("_fact",)

    def __init__(self, fact: core.TypedFact) -> None:
        """For this package; users call ``Model.parse_fact``."""
        if not isinstance(fact, core.TypedFact):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise FactError(
                f"Fact(...) takes no {type(fact).__name__}",
                hint="model.parse_fact('1,3,S,f32') makes a fact, with the symbols of that model",
            )
        self._fact = fact

    @property
    def typed(self) -> core.TypedFact:
        """The fact, as the core has it."""
        return self._fact

    def datum_type(self) -> DType:
        """The element type."""
        return self._fact.datum_type

    def rank(self) -> int:
        """Number of axes."""
        return self._fact.rank

    def dim(self, axis: int) -> Dim:
        """The size of one axis, outermost first. Raises FactError for an axis that is not there."""
        return Dim(self._fact.shape[_axis(axis, self._fact.rank, self)])

    def dims(self) -> list[Dim]:
        """The size of every axis, outermost first."""
        return [Dim(dim) for dim in self._fact.shape]

    def dump(self) -> str:
        """The text form: sizes, then the element type, as ``1,3,S,f32``."""
        return str(self._fact)

    __str__ = dump

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fact):
            return NotImplemented
        mine, others = self._fact, other._fact
        return (mine.datum_type, mine.shape) == (others.datum_type, others.shape)

    def __hash__(self) -> int:
        return hash((self._fact.datum_type, self._fact.shape))

    def __repr__(self) -> str:
        return f"Fact({self.dump()!r})"

    def _repr_html_(self) -> str:
        from tract_core.api.display import html_of_fact

        return html_of_fact("Fact", self.dump())


class InferenceFact:
    """What was said of a tensor's element type and shape, in part or in full. Immutable."""

    __slots__ = ("_fact",)

    def __init__(self, fact: core.InferenceFact | None = None) -> None:
        """``None`` says nothing at all. Other facts come from ``InferenceModel.fact``."""
        if not isinstance(fact, (core.InferenceFact, NoneType)):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise FactError(
                f"InferenceFact(...) takes no {type(fact).__name__}",
                hint="model.fact('B,3,_,f32') makes a fact, with the symbols of that model",
            )
        self._fact = core.InferenceFact() if fact is None else fact

    @property
    def partial(self) -> core.InferenceFact:
        """The fact, as the core has it."""
        return self._fact

    def datum_type(self) -> DType | None:
        """The element type; ``None`` when it is not known."""
        return self._fact.datum_type

    def rank(self) -> int | None:
        """Number of axes; ``None`` when it is not known."""
        return None if self._fact.shape is None else len(self._fact.shape)

    def dim(self, axis: int) -> Dim | None:
        """The size of one axis, outermost first; ``None`` when it is not known.

        Raises FactError for an axis that is not there, and where not even the number of axes is known.
        """
        dims = self.dims()
        if dims is None:
            raise FactError(f"{self} does not say how many axes there are", hint="rank() is None for such a fact")
        return dims[_axis(axis, len(dims), self)]

    def dims(self) -> list[Dim | None] | None:
        """The size of every axis, ``None`` where it is not known; ``None`` when not even their number is."""
        if self._fact.shape is None:
            return None
        return [None if dim is None else Dim(dim) for dim in self._fact.shape]

    def dump(self) -> str:
        """The text form: ``B,3,?,f32``, or ``..,?`` when nothing is known."""
        return str(self._fact)

    __str__ = dump

    def __eq__(self, other: object) -> bool:
        return self._fact == other._fact if isinstance(other, InferenceFact) else NotImplemented

    def __hash__(self) -> int:
        return hash((self._fact.datum_type, self._fact.shape))

    def __repr__(self) -> str:
        return f"InferenceFact({self.dump()!r})"

    def _repr_html_(self) -> str:
        from tract_core.api.display import html_of_fact

        return html_of_fact("InferenceFact", self.dump())


def _axis(axis: Any, rank: int, fact: Fact | InferenceFact) -> int:
    """The position of an axis. Raises FactError for one that is not there."""
    try:
        if 0 <= index(axis) < rank:
            return index(axis)
    except TypeError:
        pass
    raise FactError(f"there is no axis {axis!r}: {fact} has {rank}, counted from 0")


def fact_like(value: Any) -> core.InferenceFact | None:
    """The partial fact behind whatever users may give as one; ``None`` for a text, or for something else."""
    if value is None:
        return core.InferenceFact()
    if isinstance(value, InferenceFact):
        return value.partial
    if isinstance(value, Fact):
        return core.InferenceFact.from_typed(value.typed.without_value())
    return None
