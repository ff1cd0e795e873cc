"""What operators want of sizes that only a run knows.

Operators compare sizes while they are wired. Where the answer depends on a symbol, what they rely on becomes a
*condition* of the model, which every run checks: also when the operator is gone, because only the shape of its result
is read or because a rewrite put another one in its place. `tract_core.model.knowledge` keeps and uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from tract_core.dims import Dim, comparison, is_symbolic, less_or_equal, same_dim, substitute, symbols_of
from tract_core.dims.names import write_name
from tract_core.errors import DimError
from tract_core.frozen import frozen

Relation: TypeAlias = Literal["==", "<=", "->", "#", "0->0"]
"""Equal; at most; equal or stretched from 1; equal, or one of both stretched from 1; 0 only where the other is 0."""

Compare: TypeAlias = Callable[[Dim, Dim], "bool | None"]


@frozen
class Condition:
    """Two sizes, and how they must relate when the model runs.

    ``left``, ``right``: these sizes; ``relation``: the sign between them.
    """

    left: Dim
    relation: Relation
    right: Dim

    def __str__(self) -> str:
        if self.relation == "<=" and not is_symbolic(self.left):
            return f"size {self.right} must be {self.left} or more"
        return _WORDS[self.relation].format(self.left, self.right)

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols on both sides."""
        return symbols_of(self.left) | symbols_of(self.right)

    def answer(self, same: Compare = same_dim, at_most: Compare = less_or_equal) -> bool | None:
        """Whether it always holds (yes) or never (no); ``None`` where that depends or was not found out."""
        a, b = self.left, self.right
        if self.relation == "<=":
            return at_most(a, b)
        if self.relation == "0->0":
            nonzero = same(a, 0)
            answers = [same(a, b), same(b, 0), None if nonzero is None else not nonzero]
        else:
            answers = [same(*pair) for pair in self._pairs]
        return True if True in answers else None if None in answers else False

    @property
    def _pairs(self) -> list[tuple[Dim, Dim]]:
        """Sizes, of which one pair must be equal."""
        return [(self.left, self.right), (self.left, 1), (self.right, 1)][: _PAIRS[self.relation]]

    def holds(self) -> Dim:
        """1 where it holds, else 0."""
        a, b = self.left, self.right
        if self.relation == "<=":
            return comparison(a, "<=", b)
        if self.relation == "0->0":
            ways = [comparison(a, "==", b), comparison(b, "==", 0), comparison(a, ">", 0)]
        else:
            ways = [comparison(one, "==", other) for one, other in self._pairs]
        return comparison(sum(ways, start=0), ">=", 1)

    def turned(self) -> Condition:
        """The same with its sizes in the other order, where none comes first."""
        return Condition(self.right, self.relation, self.left) if self.relation in {"==", "#"} else self

    def substitute(self, values: Mapping[str, Dim]) -> Condition:
        """With symbols replaced. Raises DimError where a broadcast gets two different numbers."""
        return self.mapped(lambda dim: substitute(dim, values))

    def mapped(self, function: Callable[[Dim], Dim]) -> Condition:
        """The same relation between ``function`` of either size."""
        return Condition(function(self.left), self.relation, function(self.right))

    def broken(self, values: Mapping[str, int]) -> str | None:
        """What to tell where it does not hold for these values of all its symbols; ``None`` where it does."""
        try:
            found = self.substitute(values)
        except DimError as error:
            return f"{self}: {error.problem}"
        if found.answer():
            return None
        known = {str(size): value for size, value in ((self.left, found.left), (self.right, found.right))}
        known.update((write_name(name), values[name]) for name in sorted(self.symbols))
        numbers = [f"{text} is {value}" for text, value in known.items() if text != str(value)]
        return f"{self}; {' and '.join(filter(None, [', '.join(numbers[:-1]), *numbers[-1:]]))}"


_PAIRS: Final[Mapping[Relation, int]] = {"==": 1, "->": 2, "#": 3}

_WORDS: Final[Mapping[Relation, str]] = {
    "==": "size {} must be {}",
    "<=": "size {} must be at most {}",
    "->": "size {} must be 1 or {}",
    "#": "sizes {} and {} must be equal, or one of them 1",
    "0->0": "size {} must not be 0 unless {} is",
}


_NOTED: ContextVar[list[Condition] | None] = ContextVar("noted", default=None)
_ORIGIN: ContextVar[str | None] = ContextVar("origin", default=None)


class noting:  # noqa: N801, used like a function; a generator would cost every wired node twice as much
    """Inside, the list gets every condition that the functions below rely on."""

    __slots__ = ("_token",)

    def __enter__(self) -> list[Condition]:
        noted: list[Condition] = []
        self._token = _NOTED.set(noted)
        return noted

    def __exit__(self, *_: object) -> None:
        _NOTED.reset(self._token)


@contextmanager
def on_behalf_of(origin: str) -> Generator[None]:
    """Inside, what is wired is wired for ``origin``, a node of a file, which messages name."""
    token = _ORIGIN.set(origin)
    try:
        yield
    finally:
        _ORIGIN.reset(token)


def origin_or(default: str) -> str:
    """The node of a file that is being wired; ``default`` where there is none."""
    return _ORIGIN.get() or default


def may_equal(a: Dim, b: Dim) -> bool:
    """Whether two sizes can be equal. Where that depends on a symbol, it is noted that they must be."""
    return a == b or _may(Condition(a, "==", b))


def may_be_at_most(a: Dim, b: Dim) -> bool:
    """Whether ``a <= b`` can be. Where that depends on a symbol, it is noted that it must be."""
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    return a is b or _may(Condition(a, "<=", b))


def may_stretch(a: Dim, b: Dim) -> bool:
    """Whether an axis of size ``a`` can be seen as one of ``b``: it is equal or 1. Noted where it depends."""
    return a in (b, 1) or _may(Condition(a, "->", b))


def may_broadcast(a: Dim, b: Dim) -> bool:
    """Whether sizes ``a`` and ``b`` can be equal, or one of them 1. Noted where it depends."""
    return a in (b, 1) or b == 1 or _may(Condition(a, "#", b))


def may_be_zero_only_with(a: Dim, b: Dim) -> bool:
    """Whether ``a`` can be something else than 0, or ``b`` can be 0. Noted where it depends."""
    return _may(Condition(a, "0->0", b))


def may_be_of_shape(shape: Sequence[Dim], wanted: Sequence[Dim]) -> bool:
    """Whether ``shape`` can be ``wanted``, axis by axis. Noted where it depends."""
    return len(shape) == len(wanted) and all(may_equal(a, b) for a, b in zip(shape, wanted, strict=True))


def may_fit_into(shape: Sequence[Dim], wanted: Sequence[Dim]) -> bool:
    """Whether ``shape``, aligned at the last axis, can be stretched to ``wanted``. Noted where it depends."""
    aligned = wanted[len(wanted) - len(shape) :]
    return len(shape) <= len(wanted) and all(may_stretch(a, b) for a, b in zip(shape, aligned, strict=True))


@lru_cache(maxsize=4096)
def _usual_answer(condition: Condition) -> bool | None:
    """What nothing but the sizes themselves says: networks ask the same of many nodes."""
    return condition.answer()


def _may(condition: Condition) -> bool:
    answer = _usual_answer(condition)
    noted = _NOTED.get()
    if answer is None and noted is not None:
        noted.append(condition)
    return answer is not False
