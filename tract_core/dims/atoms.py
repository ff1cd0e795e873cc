"""The factors that symbolic sizes are products of, and the limits on how large an expression may grow.

A factor is a symbol, held as its name, or an ``Atom``: an operation that sums and products cannot express. Atoms are
plain data here. What they mean, how they are built and how they print is decided in the tables of the other modules,
keyed by ``Kind``.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, final

from tract_core.errors import DimError

if TYPE_CHECKING:
    from tract_core.dims.tdim import Dim

MAX_TERMS = 1024
"""Terms in one sum."""
MAX_DEGREE = 32
"""Factors in one product."""
MAX_DEPTH = 64
"""Operations inside one another."""
MAX_WEIGHT = 16384
"""Terms in one operation, all levels counted."""
MAX_ARGUMENTS = 32
"""Arguments of one ``min``, ``max`` or broadcast."""


class Kind(StrEnum):
    """What an ``Atom`` computes from its arguments."""

    DIV = "/"
    """Floor division: a size, and a positive ``int``."""
    MIN = "min"
    """The smallest of two or more sizes, in any order."""
    MAX = "max"
    """The largest of two or more sizes, in any order."""
    BROADCAST = "#"
    """The common size of two or more sizes that are equal or 1, in any order."""
    GE = ">="
    """1 where the one argument is at least 0, else 0."""
    EQ = "=="
    """1 where the one argument is 0, else 0."""


UNORDERED = frozenset({Kind.MIN, Kind.MAX, Kind.BROADCAST})
BOOLEAN = frozenset({Kind.GE, Kind.EQ})


@final
class Atom:
    """One operation in canonical form: ``kind`` applied to ``args``.

    Immutable; equal to another atom of the same kind with equal arguments, whose order counts only where it has a
    meaning. Build atoms with the functions of this package, which keep the form canonical, never directly.
    """

    __slots__ = ("_hash", "_identity", "_key", "args", "depth", "kind", "symbols", "weight")

    kind: Kind
    args: tuple[Dim, ...]
    symbols: frozenset[str]
    """Every symbol inside, at any depth."""
    depth: int
    """Operations inside one another, this one included."""
    weight: int
    """Terms inside, all levels counted."""
    _identity: object
    _hash: int | None
    _key: str | None

    def __init__(self, kind: Kind, args: tuple[Dim, ...]) -> None:
        """Raises DimError where the expression gets too deep or too large."""
        keep = object.__setattr__
        keep(self, "kind", kind)
        keep(self, "args", args)
        keep(self, "_identity", frozenset(args) if kind in UNORDERED else args)
        keep(self, "_hash", None)
        keep(self, "_key", None)
        self._measure()

    def _measure(self) -> None:
        symbols: set[str] = set()
        depth, weight = 0, 1 + sum(map(weight_of, self.args))
        for factor in _factors(self.args):
            if isinstance(factor, str):
                symbols.add(factor)
            else:
                symbols |= factor.symbols
                depth = max(depth, factor.depth)
        if depth >= MAX_DEPTH or weight > MAX_WEIGHT:
            raise too_large(f"more than {MAX_DEPTH} levels or {MAX_WEIGHT} terms")
        keep = object.__setattr__
        keep(self, "symbols", frozenset(symbols))
        keep(self, "depth", depth + 1)
        keep(self, "weight", weight)

    @property
    def key(self) -> str:
        """A text that sorts atoms the same way however they were written; not for reading."""
        if self._key is None:
            keys = [dim_key(arg) for arg in self.args]
            if self.kind in UNORDERED:
                keys.sort()
            object.__setattr__(self, "_key", f"{self.kind}({','.join(keys)})")
        return self._key or ""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Atom):
            return False
        return self.kind is other.kind and self._identity == other._identity

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash((self.kind, self._identity)))
        return self._hash or 0

    def __lt__(self, other: Factor) -> bool:
        """Symbols before atoms, so that the factors of a product can be sorted."""
        return isinstance(other, Atom) and self.key < other.key

    def __gt__(self, other: Factor) -> bool:
        return isinstance(other, str) or self.key > other.key

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an Atom cannot change: {name}")

    def __reduce__(self) -> tuple[object, ...]:
        # Not the cached hash: the hash of a string differs between processes.
        return Atom, (self.kind, self.args)

    def __repr__(self) -> str:
        return f"Atom({self.kind.name}, {self.args})"


Factor: TypeAlias = str | Atom
Monomial: TypeAlias = tuple[Factor, ...]
"""A product of one or more factors, sorted, a power written as repetition."""


def multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    """The product in canonical form. Raises DimError above ``MAX_DEGREE`` factors."""
    factors = sorted(left + right)
    for factor in factors:
        if isinstance(factor, Atom) and factor.kind in BOOLEAN:
            factors = _without_repeated_booleans(factors)
            break
    if len(factors) > MAX_DEGREE:
        raise too_large(f"a product of {len(factors)} factors, at most {MAX_DEGREE} are allowed")
    return tuple(factors)


def dim_key(dim: Dim) -> str:
    """A text that is the same for equal sizes, however they were written; not for reading."""
    if isinstance(dim, int):
        return str(dim)
    terms = sorted(f"{factor}*{monomial_key(monomial)}" for monomial, factor in dim.terms.items())
    return f"{'+'.join(terms)}+{dim.constant}"


def monomial_key(monomial: Monomial) -> str:
    """A text that is the same for equal products; not for reading."""
    return "*".join(repr(factor) if isinstance(factor, str) else factor.key for factor in monomial)


def weight_of(dim: Dim) -> int:
    """Symbols and operations in a size, all levels counted."""
    return sum(1 if isinstance(factor, str) else factor.weight for factor in _factors((dim,)))


def too_large(found: str) -> DimError:
    """The error for an expression that outgrows the limits; ``found`` says which and how."""
    return DimError(
        f"the symbolic size grows too large: {found}",
        hint="give some of the symbols a value, or use one new symbol for the part that repeats",
    )


def _factors(dims: Iterable[Dim]) -> Iterable[Factor]:
    for dim in dims:
        if not isinstance(dim, int):
            for monomial in dim.terms:
                yield from monomial


def _without_repeated_booleans(factors: list[Factor]) -> list[Factor]:
    """0 and 1 are their own squares, so a condition counts once in a product."""
    kept: list[Factor] = []
    for factor in factors:
        if isinstance(factor, str) or factor.kind not in BOOLEAN or factor not in kept:
            kept.append(factor)
    return kept
