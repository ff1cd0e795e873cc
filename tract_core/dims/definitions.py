"""Symbols that are the names of longer sizes.

Where nothing decides a maximum or a broadcast, a size would hold all of the sizes that it is made of, and those behind
it would hold it several times. So a size has a longest text; one that is longer gets a symbol, and whatever is made of
it mentions that. A definition mentions symbols and definitions before it only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tract_core.dims.atoms import Atom, weight_of
from tract_core.dims.tdim import Dim, TDim
from tract_core.dims.values import complete, symbols_of
from tract_core.dims.walk import substitute
from tract_core.errors import DimError

LONGEST: Final = 80
"""Characters of a size without a name."""

LONGEST_SUM: Final = 200
"""Characters of one that is a sum of products, of which more is known than of its name."""


def is_short(dim: Dim) -> bool:
    """Whether a size needs no name. A symbol, with a number added or not, needs none however long its own name is."""
    if isinstance(dim, int) or weight_of(dim) <= 1:
        return True
    operations = any(isinstance(factor, Atom) for term in dim.terms for factor in term)
    return len(str(dim)) <= (LONGEST if operations else LONGEST_SUM)


class Definitions:
    """The definitions of one model, in the order in which they were made."""

    def __init__(self) -> None:
        self._dims: dict[str, TDim] = {}
        self._names: dict[TDim, str] = {}
        self._roots: dict[str, frozenset[str]] = {}

    def __len__(self) -> int:
        return len(self._dims)

    def __iter__(self) -> Iterator[tuple[str, TDim]]:
        """Every name with what it stands for."""
        return iter(self._dims.items())

    def __contains__(self, name: str) -> bool:
        return name in self._dims

    def name_of(self, dim: TDim) -> str | None:
        """The symbol that stands for a size, if there is one."""
        return self._names.get(dim)

    def dim_of(self, name: str) -> TDim | None:
        """What a symbol stands for, if it is the name of a size."""
        return self._dims.get(name)

    def add(self, name: str, dim: TDim) -> None:
        """Let ``name`` stand for ``dim``, which mentions symbols and names that are here."""
        self._dims[name] = dim
        self._names.setdefault(dim, name)
        self._roots[name] = self.roots(symbols_of(dim))

    def remove(self, name: str) -> None:
        """Take out the last definition."""
        dim = self._dims.pop(name)
        del self._roots[name]
        if self._names[dim] == name:
            del self._names[dim]

    def roots(self, names: frozenset[str]) -> frozenset[str]:
        """The symbols on which the values of these depend: themselves where they stand for nothing else."""
        if not self._dims or names.isdisjoint(self._dims):
            return names
        own = frozenset(name for name in names if name not in self._dims)
        return own.union(*(self._roots[name] for name in names if name in self._dims))

    def with_known(self, names: frozenset[str]) -> frozenset[str]:
        """These symbols, and those that have values where these have."""
        if not self._dims:
            return names
        return names.union(name for name, roots in self._roots.items() if roots <= names)

    def with_dependent(self, names: frozenset[str]) -> frozenset[str]:
        """These symbols, and those whose values depend on one of them."""
        if not self._dims:
            return names
        return names.union(name for name, roots in self._roots.items() if not roots.isdisjoint(names))

    def mentioned(self, names: frozenset[str]) -> list[tuple[str, TDim]]:
        """The definitions of these symbols, and of those that they mention, in order."""
        wanted, found = set(names), list[tuple[str, TDim]]()
        for name in reversed(self._dims):
            if name in wanted:
                wanted |= symbols_of(self._dims[name])
                found.append((name, self._dims[name]))
        return found[::-1]

    def complete(self, values: dict[str, int]) -> None:
        """Add the values that follow from those of other symbols.

        A size that contradicts itself gets none: whoever wants it so has a condition, which says that.
        """
        complete(values, self._dims.items())

    def in_full(self, longest: int | None = None) -> dict[str, Dim]:
        """What each name stands for, in symbols that are no names.

        ``longest``: characters of a size; names of longer ones are left out, and stay in the others. Raises DimError
        where there is no such limit and a size is too large.
        """
        found: dict[str, Dim] = {}
        for name, dim in self._dims.items():
            try:
                full = substitute(dim, found)
            except DimError:
                if longest is None:
                    raise
                continue
            if longest is None or len(str(full)) <= longest:
                found[name] = full
        return found

    def substituted(self, values: Mapping[str, Dim]) -> tuple[Definitions, Mapping[str, Dim]]:
        """With symbols replaced: what is still the name of something, and ``values`` with what replaces the others."""
        if not self._dims:
            return self, values
        after, replaced = Definitions(), dict(values)
        for name, dim in self._dims.items():
            found = substitute(dim, replaced)
            if is_short(found):
                replaced.setdefault(name, found)
            elif isinstance(found, TDim) and name not in replaced:
                after.add(name, found)
        return after, replaced

    def outside(self, values: Mapping[str, Dim]) -> dict[str, Dim]:
        """``values``, and what they make of the names whose sizes mention them, however long that is.

        Raises DimError where it is too large.
        """
        found = dict(values)
        for name, dim in self._dims.items():
            if not found.keys().isdisjoint(symbols_of(dim)):
                found[name] = substitute(dim, found)
        return found

    def copy(self) -> Definitions:
        """The same definitions, which change on their own."""
        other = Definitions()
        other._dims, other._names, other._roots = dict(self._dims), dict(self._names), dict(self._roots)
        return other


NO_DEFINITIONS: Final = Definitions()
"""Nobody adds to it."""
