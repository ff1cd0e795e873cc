"""Check what the code behind an operator returns, against the facts of the node: how many arrays, their types, shapes.

What is expected is put together once for a node, with symbolic sizes once for the values of their symbols; what is left
for each run is to compare types and shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tract_core.data import Container, DatumType
from tract_core.dims import evaluate, symbols_of
from tract_core.errors import DimError, FactError, RunError
from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.model.fact import TypedFact
    from tract_core.plugins.keys import Array

_ARRAYS: Any = (np.ndarray, np.generic)

Wanted = tuple[np.dtype[Any], tuple[int | None, ...]]
"""A type, and a size per axis; ``None`` for one that the run does not know."""


def is_right(outputs: Any, wanted: Sequence[Wanted]) -> bool:
    """Whether an operator surely returned what is wanted; `Promise.check` looks closer."""
    if outputs.__class__ is not tuple or len(outputs) != len(wanted):
        return False
    for array, (dtype, shape) in zip(outputs, wanted):  # noqa: B905 - they are as many, and this runs for every node
        if not isinstance(array, _ARRAYS) or array.dtype != dtype or array.shape != shape:
            return False
    return True


def are_arrays(outputs: Any) -> bool:
    """Whether these are arrays, as far as that is all that is asked."""
    return all(isinstance(one, _ARRAYS) for one in outputs)


@frozen
class Promise:
    """What a node promises to compute. ``owner``: the distribution that brought the code."""

    owner: str
    facts: tuple[TypedFact, ...]

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the symbols in the shapes."""
        return frozenset[str]().union(*(fact.shape.symbols() for fact in self.facts))

    def now(self, values: Mapping[str, int]) -> tuple[Wanted, ...]:
        """What is wanted where the symbols have these values."""
        return tuple((_dtype(fact), sizes_now(fact, values)) for fact in self.facts)

    def check(self, outputs: Any, wanted: Sequence[Wanted]) -> None:
        """Raises RunError, naming the distribution, where the outputs, a tuple of arrays, are not what is wanted."""
        if not isinstance(outputs, tuple):
            raise self._broken(f"a {type(outputs).__name__} instead of a tuple of arrays")
        outputs = cast("tuple[Any, ...]", outputs)
        if len(outputs) != len(wanted):
            raise self._broken(f"{_many(len(outputs), 'output')} instead of {len(wanted)}")
        for slot, (value, fact, (_, shape)) in enumerate(zip(outputs, self.facts, wanted, strict=True)):
            which = f" as output {slot}" if len(wanted) > 1 else ""
            if not are_arrays([value]):
                raise self._broken(f"a {type(value).__name__}{which} instead of an array")
            if not _is_of(value, fact) or not _fits(value.shape, shape):
                sizes = ",".join("_" if size is None else str(size) for size in shape)
                kind = fact.datum_type.storage.short
                raise self._broken(f"{_text(value)}{which} where its fact {fact} promises {kind}[{sizes}]")

    def _broken(self, what: str) -> RunError:
        return RunError(f"the operator returned {what}", hint=self.hint)

    @property
    def hint(self) -> str:
        """Who can mend it."""
        return f"this is a defect of {self.owner}, which brought what the operator computes"


def _dtype(fact: TypedFact) -> np.dtype[Any]:
    return np.dtype(object) if isinstance(fact.datum_type, Container) else fact.datum_type.storage.numpy


def sizes_now(fact: TypedFact, values: Mapping[str, int]) -> tuple[int | None, ...]:
    """The shape where the symbols have these values; ``None`` for a size that is not known."""
    return tuple(_size(dim, values) for dim in fact.shape)


def _size(dim: Any, values: Mapping[str, int]) -> int | None:
    try:
        return evaluate(dim, values) if symbols_of(dim) <= values.keys() else None
    except DimError:
        return None  # what the size contradicts is told elsewhere


def _is_of(value: Any, fact: TypedFact) -> bool:
    if isinstance(fact.datum_type, Container):
        return value.dtype == object
    try:
        return DatumType.from_numpy(value.dtype) == fact.datum_type.storage
    except FactError:
        return False


def _fits(found: Sequence[int], wanted: Sequence[int | None]) -> bool:
    return len(found) == len(wanted) and all(b is None or a == b for a, b in zip(found, wanted, strict=True))


def _text(value: Array | np.generic) -> str:
    return f"{value.dtype}{list(value.shape)}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
