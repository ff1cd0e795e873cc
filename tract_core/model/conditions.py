"""What operators want of sizes that only a run knows.

Operators compare sizes while they are wired. Where the answer depends on a symbol, what they rely on becomes a
*condition* of the model, which every run checks: also when the operator is gone, because only the shape of its result
is read or because a rewrite put another one in its place. The model of a branch or a loop has conditions of its own,
which count when it runs.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from tract_core.dims import (
    Assertion,
    Dim,
    SymbolScope,
    comparison,
    is_symbolic,
    less_or_equal,
    same_dim,
    substitute,
    symbol_name,
    symbols_of,
)
from tract_core.dims.bounds import Known
from tract_core.dims.names import write_name
from tract_core.dims.scope import MAX_ASSERTIONS
from tract_core.dims.walk import has_broadcast, rewrite
from tract_core.errors import DimError
from tract_core.frozen import frozen

Relation: TypeAlias = Literal["==", "<=", "->", "#", "0->0"]
"""Equal; at most; equal or stretched from 1; equal, or one of both stretched from 1; 0 only where the other is 0."""

Compare: TypeAlias = Callable[[Dim, Dim], "bool | None"]


@frozen
class Condition:
    """Two sizes, and how they must relate when the model runs."""

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

    def substitute(self, values: Mapping[str, Dim]) -> Condition:
        """With symbols replaced. Raises DimError where a broadcast gets two different numbers."""
        return Condition(substitute(self.left, values), self.relation, substitute(self.right, values))

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


class Conditions:
    """The conditions of one model, each with the node that wanted it first. Picklable.

    What they make certain is used: of two symbols that must be equal, the one that the model had first stands for both,
    and a number stands for a symbol that must be equal to it. The broadcast of two sizes that must be equal is the one
    that was named first.
    """

    def __init__(self) -> None:
        self._origins: dict[Condition, str] = {}
        self._names: set[str] = set()
        self._values: MutableMapping[str, Dim] = {}
        self._below: Conditions | None = None
        self._equal: dict[Dim, Dim] | None = None
        """Sizes, each with one that it must equal and that was named earlier; ``None`` until that is asked for."""

    def __iter__(self) -> Iterator[tuple[Condition, str]]:
        """Every condition with its origin, in the order in which they came."""
        return iter(self._origins.items())

    def __contains__(self, condition: Condition) -> bool:
        return condition in self._origins or (self._below is not None and condition in self._below)

    def __len__(self) -> int:
        return len(self._origins)

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols that are in a condition."""
        return frozenset(self._names)

    def answer(self, condition: Condition, scope: SymbolScope) -> bool | None:
        """Whether a condition follows from what is here and in the scope (yes), contradicts it (no), or neither."""
        return True if condition in self else self._judged(condition, scope)  # the same is wanted by many nodes

    def _judged(self, condition: Condition, scope: SymbolScope) -> bool | None:
        try:
            left, right = self.settle(condition.left), self.settle(condition.right)
            answer = Condition(left, condition.relation, right).answer(scope.same, scope.less_or_equal)
            # Only now, as a condition may contradict others that say of its sizes that they are equal.
            return True if answer is None and self._first_of(left) == self._first_of(right) else answer
        except DimError:
            return False

    def contradicts(self, condition: Condition, scope: SymbolScope) -> bool:
        """Whether a condition, which may be one of them, contradicts the others."""
        return self._judged(condition, scope) is False

    def contradict(self, scope: SymbolScope) -> bool:
        """Whether it was found out that they never hold all together."""
        try:
            known = self.asserted(scope)
        except DimError:
            return True
        return any(self.contradicts(condition, known) for condition in self._origins)

    def asserted(self, scope: SymbolScope, names: frozenset[str] | None = None) -> SymbolScope:
        """A scope that knows what they say (those about ``names`` at least), as far as assertions can say it.

        Raises DimError where they contradict each other, or what the scope knows.
        """
        found = scope.copy()
        for condition in self._origins:
            about = names is None or not condition.symbols.isdisjoint(names)
            if about and condition.relation in ("==", "<=") and sum(1 for _ in found) < MAX_ASSERTIONS:
                found.add_assertion(Assertion(condition.left, condition.relation, condition.right))
        return found

    def add(self, condition: Condition, origin: str, scope: SymbolScope) -> None:
        """Rely on ``condition`` from now on. ``scope``: knows which of two symbols came first."""
        if condition not in self:
            self._origins[condition] = origin
            self._names |= condition.symbols
            if condition.relation == "==":
                self._use(self.settle(condition.left), self.settle(condition.right), scope)

    def _use(self, left: Dim, right: Dim, scope: SymbolScope) -> None:
        before = len(self._values)
        self._learn(left, right, scope)
        if len(self._values) != before:
            self._equal = None
        elif self._equal is not None:
            self._unite(left, right)

    def _learn(self, left: Dim, right: Dim, scope: SymbolScope) -> None:
        names = [name for name in (symbol_name(left), symbol_name(right)) if name is not None]
        if len(names) == 2:
            first, later = sorted(names, key=scope.position)
            self._values[later] = left if symbol_name(left) == first else right
        elif names and not (is_symbolic(left) and is_symbolic(right)):
            self._values[names[0]] = right if is_symbolic(left) else left

    def define(self, name: str, dim: Dim) -> None:
        """A symbol that no run binds any more: it is ``dim``."""
        dim = self.settle(dim)
        if name not in symbols_of(dim):
            self._values[name] = dim
            self._equal = None

    @property
    def definitions(self) -> Mapping[str, Dim]:
        """What is known of symbols, by name: the size that stands for each."""
        return dict(self._values)

    def settle(self, dim: Dim, but: frozenset[str] = frozenset()) -> Dim:
        """``dim``, with what is known of its symbols put in their place, but for those named by ``but``.

        Of sizes that must be equal, a broadcast has one.
        """
        dim = self._with_values(dim, but)
        if not has_broadcast(dim):
            return dim
        united = rewrite(dim, {}, Known(first_of=self._first_of))
        return dim if symbols_of(dim) & but - symbols_of(united) else united

    def _with_values(self, dim: Dim, but: frozenset[str] = frozenset()) -> Dim:
        names = symbols_of(dim) - but if self._values else ()
        while found := {name: self._value(name, but) for name in names if name in self._values}:
            dim = substitute(dim, found)
            names = symbols_of(dim) - but
        return dim

    def _first_of(self, dim: Dim) -> Dim:
        """Of the sizes that must equal ``dim``, the one that was named first; in one step from now on."""
        equal, passed = self._equal_sizes(), list[Dim]()
        while (following := equal.get(dim)) is not None:
            passed.append(dim)
            dim = following
        equal.update(dict.fromkeys(passed, dim))
        return dim

    def _equal_sizes(self) -> dict[Dim, Dim]:
        if self._equal is None:
            self._equal = {} if self._below is None else dict(self._below._equal_sizes())
            for condition in self._origins:
                if condition.relation == "==":
                    self._unite(self._with_values(condition.left), self._with_values(condition.right))
        return self._equal

    def _unite(self, left: Dim, right: Dim) -> None:
        """Two sizes are equal, and with them all that equal them: the first one stands for them, or a number."""
        stays, goes = self._first_of(left), self._first_of(right)
        if not is_symbolic(goes):
            stays, goes = goes, stays
        if stays != goes and is_symbolic(goes):
            self._equal_sizes()[goes] = stays

    def _value(self, name: str, but: frozenset[str]) -> Dim:
        """What a symbol stands for, in one step from now on where several lead there."""
        passed: list[str] = []
        dim = self._values[name]
        while (following := symbol_name(dim)) is not None and following in self._values and following not in but:
            passed.append(name)
            name, dim = following, self._values[following]
        if not but:
            self._values.update(dict.fromkeys(passed, dim))
        return dim

    def bound_by(self, names: frozenset[str]) -> list[tuple[Condition, str]]:
        """Every condition as a run sees it that binds these symbols: others are replaced by what they stand for."""
        if not self._values or self._names <= names:
            return list(self)
        found = ((Condition(self.settle(c.left, names), c.relation, self.settle(c.right, names)), o) for c, o in self)
        return [(condition, origin) for condition, origin in found if condition.answer() is not True]

    def rewind(self, count: int, scope: SymbolScope) -> None:
        """Forget all but the first ``count`` conditions, and what was known by the others."""
        kept = list(self)[:count]
        if len(kept) < len(self):
            self._origins, self._names, self._values, self._equal = {}, set(), {}, None
            for condition, origin in kept:
                self.add(condition, origin, scope)

    def substitute(self, values: Mapping[str, Dim]) -> Conditions:
        """With symbols replaced; what then holds for certain is left out. Raises DimError as `Condition` does."""
        if not self._names & values.keys() and not self._values:
            return self.copy()
        other = Conditions()
        for condition, origin in self:
            replaced = condition.substitute(values)
            if replaced.answer() is not True:
                other._origins[replaced] = origin
                other._names |= replaced.symbols
        for name, dim in self._values.items():
            if name not in values:
                other.define(name, substitute(dim, values))  # nothing is defined by itself
        return other

    def about(self, names: frozenset[str]) -> Conditions:
        """Those whose symbols are all among ``names``."""
        other = Conditions()
        for condition, origin in self:
            if condition.symbols <= names:
                other._origins[condition] = origin
                other._names |= condition.symbols
        other._values = dict(self._values)
        return other

    def copy(self) -> Conditions:
        """The same conditions, which change on their own."""
        other = Conditions()
        other._origins, other._names, other._values = dict(self._origins), set(self._names), dict(self._values)
        return other

    def layer(self) -> Conditions:
        """Conditions that come on top of these, which are used and stay as they are."""
        other = Conditions()
        other._below, other._values = self, ChainMap({}, self._values)
        return other
