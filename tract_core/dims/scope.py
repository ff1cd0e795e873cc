"""The symbols of one model, and what is asserted of them.

Expressions carry the names of their symbols only. What else may be relied on belongs to the model, and is kept here:
assertions that always hold, and *scenarios*, named ways to use the model with assertions of their own. What a scenario
asserts is relied on only by those who ask about that scenario, also where there is a single one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from operator import attrgetter
from typing import Final

from tract_core.dims.assertion import Assertion, parse_assertion
from tract_core.dims.assuming import ContradictionError
from tract_core.dims.atoms import Atom
from tract_core.dims.definitions import Definitions, is_short
from tract_core.dims.known import Interval
from tract_core.dims.names import check_name, write_name
from tract_core.dims.parse import parse_dim
from tract_core.dims.tdim import Dim, TDim, factor_dim, symbol
from tract_core.dims.theory import Theory, assume, build_theory, explain_contradiction
from tract_core.dims.values import symbols_of
from tract_core.dims.walk import with_factor_replaced
from tract_core.errors import DimError

MAX_ASSERTIONS = 128
"""Assertions in one scope."""


_ERAS: Final = count()
"""Counts how often something was taken back in any scope."""


class SymbolScope:
    """Names of symbols, scenarios and assertions, each in the order in which they were added. Picklable.

    Every question about a size takes an optional ``scenario``, in which its assertions are relied on as well; a
    scenario that was not added raises DimError.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: dict[str, int] = {}
        self._scenarios: dict[str, None] = {}
        self._assertions: dict[Assertion, None] = {}
        self._theories: dict[str | None, Theory] = {}
        self._fresh: dict[str, int] = {}
        self._unnamed: set[str] = set()
        self._definitions = Definitions()
        self._era = next(_ERAS)
        for name in names:
            self.add(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all symbols."""
        return tuple(self._names)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> TDim:
        """The symbol ``name``, which belongs to the scope from now on. Raises DimError where it is no name."""
        found = symbol(name)
        self._names.setdefault(name, len(self._names))
        self._unnamed.discard(name)
        return found

    def position(self, name: str) -> int:
        """How many symbols were in the scope before ``name``; all of them where it is not in it."""
        return self._names.get(name, len(self._names))

    def new_symbol(self, prefix: str) -> TDim:
        """A symbol that was not in the scope: ``prefix``, or ``prefix_1``, ``prefix_2`` ... where that is taken.

        It is for a size that nobody named.
        """
        name = self._free_name(prefix)
        found = self.add(name)
        self._unnamed.add(name)
        return found

    @property
    def definitions(self) -> Definitions:
        """The symbols that are names of longer sizes."""
        return self._definitions

    def counts(self) -> tuple[int, int]:
        """How many assertions and definitions there are."""
        return len(self._assertions), len(self._definitions)

    @property
    def era(self) -> int:
        """Another number whenever something was taken back; else assertions and definitions were only added."""
        return self._era

    def named(self, dim: Dim, known: Theory, *, is_size: bool = True) -> Dim:
        """``dim``, with symbols for the operations that make it long, or for all of it; new ones where there were none.

        ``known``: what is known besides. ``is_size``: whether no run goes on for which ``dim`` is negative; symbols
        stand for nothing that can be.
        """
        while isinstance(dim, TDim) and not is_short(dim):
            atoms = {factor for term in dim.terms for factor in term if isinstance(factor, Atom)}
            long = [atom for atom in atoms if atom.weight > 2 and known.less_or_equal(0, factor_dim(atom))]
            if not long:
                return self._name_of(dim) if is_size else dim
            atom = max(long, key=attrgetter("weight", "key"))
            dim = with_factor_replaced(dim, atom, self._name_of(factor_dim(atom)))
        return dim

    def _name_of(self, dim: TDim) -> TDim:
        name = self._definitions.name_of(dim)
        return self.define(self._free_name("size"), dim) if name is None else symbol(name)

    def define(self, name: str, dim: Dim) -> TDim:
        """Let the symbol ``name`` stand for ``dim``; returns it. Its value follows in every run from those of others.

        Raises DimError where ``dim`` is a number, or mentions the symbol, or where the symbol stands for something.
        """
        depends = symbols_of(dim) | self._definitions.roots(symbols_of(dim))
        if isinstance(dim, int) or name in depends or name in self._definitions:
            raise DimError(
                f"{write_name(name)} cannot be the name of {dim}", hint="a name stands for one size of other symbols"
            )
        own = self.add(name)
        self._unnamed.add(name)
        self._add_symbols(symbols_of(dim))
        self._definitions.add(name, dim)
        self._theories = {None: self._theories[None]} if None in self._theories else {}
        for theory in self._theories.values():
            theory.define(name, dim)
        return own

    def unname(self, name: str) -> None:
        """Let ``name``, which `new_symbol` made in another scope, stand for a size that nobody named here too.

        Raises DimError where the scope has no such symbol.
        """
        if name not in self._names:
            raise DimError(f"there is no symbol {name!r:.80}", hint="add(name) makes one")
        self._unnamed.add(name)

    def is_unnamed(self, dim: Dim) -> bool:
        """Whether ``dim`` is an expression of symbols that all stand for sizes that nobody named."""
        names = self._definitions.roots(symbols_of(dim))
        return bool(names) and names <= self._unnamed

    def parse(self, text: str) -> Dim:
        """The size written as ``text``, whose symbols belong to the scope from now on. Raises DimError."""
        dim = parse_dim(text)
        self._add_symbols(symbols_of(dim))
        self._unnamed -= symbols_of(dim)
        return dim

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The names of all scenarios."""
        return tuple(self._scenarios)

    def add_scenario(self, name: str) -> None:
        """Make ``name`` a scenario, if it is not yet one. Raises DimError where it is no name."""
        check_name(name)
        self._scenarios[name] = None

    def assertions(self, scenario: str | None = None) -> Iterator[Assertion]:
        """The assertions that always hold, and those of ``scenario``."""
        self._check_scenario(scenario)
        return (found for found in tuple(self._assertions) if found.scenario in (None, scenario))

    def __iter__(self) -> Iterator[Assertion]:
        """Every assertion, also those of scenarios."""
        return iter(tuple(self._assertions))

    def add_assertion(self, assertion: Assertion | str) -> Assertion:
        """Rely on ``assertion``: an ``Assertion``, or text such as ``"S>=1"`` or ``"decode: S==1"``.

        Its symbols and its scenario belong to the scope from now on. Raises DimError, and changes nothing, where the
        text cannot be read or the assertion contradicts earlier ones, which the error names.
        """
        added = parse_assertion(assertion) if isinstance(assertion, str) else assertion
        if added in self._assertions:
            return added
        if len(self._assertions) >= MAX_ASSERTIONS:
            raise DimError(
                f"the assertion {added} would be one too many: at most {MAX_ASSERTIONS} are allowed",
                hint="remove assertions that follow from others",
            )
        if added.scenario is not None:
            check_name(added.scenario)
        self._extend(added)
        if added.scenario is not None:
            self.add_scenario(added.scenario)
        self._add_symbols(added.symbols)
        self._assertions[added] = None
        return added

    def substitute(self, values: Mapping[str, Dim]) -> SymbolScope:
        """With symbols replaced: a scope without them, in which what was asserted of them is asserted of their values.

        Raises DimError where an assertion that always holds is false for these values.
        """
        after = SymbolScope(name for name in self._names if name not in values)
        after._definitions, values = self._definitions.substituted(values)
        for dim in values.values():
            for name in sorted(symbols_of(dim)):
                after.add(name)
        for name in self._scenarios:
            after.add_scenario(name)
        for assertion in self:
            replaced = assertion.substitute(values)
            holds = replaced.holds({})
            if holds is None:
                after.add_assertion(replaced)
            elif not holds and assertion.scenario is None:
                given = ", ".join(f"{name}={value}" for name, value in values.items() if name in assertion.symbols)
                raise DimError(f"{assertion} does not hold for {given}", hint="choose values that the model allows")
        return after

    def check(self, values: Mapping[str, int], scenario: str | None = None) -> None:
        """Raises DimError naming the assertions that do not hold for these values of symbols."""
        broken = [str(found) for found in self.assertions(scenario) if found.holds(values) is False]
        if broken:
            shown = ", ".join(f"{write_name(name)}={value}" for name, value in sorted(values.items()))
            raise DimError(
                f"{', '.join(broken)} does not hold for {shown}",
                hint="give arrays whose sizes satisfy the assertions of the model",
            )

    def simplify(self, dim: Dim, scenario: str | None = None) -> Dim:
        """A size that equals ``dim``, in which what the assertions decide is decided; ``dim`` where they are silent."""
        if isinstance(dim, int) or (scenario is None and not self._assertions):
            return dim
        return self.theory(scenario).simplify(dim)

    def bounds(self, dim: Dim, scenario: str | None = None) -> Interval:
        """Numbers that ``dim`` never falls below and never exceeds, ``None`` for one that was not found."""
        return self.theory(scenario).bounds(dim)

    def same(self, a: Dim, b: Dim, scenario: str | None = None) -> bool | None:
        """Whether ``a`` and ``b`` are equal: always, never, or ``None`` where it depends or was not found out."""
        return self.theory(scenario).same(a, b)

    def less_or_equal(self, a: Dim, b: Dim, scenario: str | None = None) -> bool | None:
        """Whether ``a <= b``: always, never, or ``None`` where it depends or was not found out."""
        return self.theory(scenario).less_or_equal(a, b)

    def copy(self) -> SymbolScope:
        """A scope with the same contents, which changes on its own."""
        other = SymbolScope(self._names)
        other._scenarios = dict(self._scenarios)
        other._assertions = dict(self._assertions)
        other._theories = {scenario: theory.copy() for scenario, theory in self._theories.items()}
        other._fresh = dict(self._fresh)
        other._unnamed = set(self._unnamed)
        other._definitions = self._definitions.copy()
        return other

    def reset(self, earlier: SymbolScope) -> None:
        """Hold what ``earlier`` holds, and nothing else."""
        self.__dict__.update(earlier.copy().__dict__)
        self._era = next(_ERAS)

    def merge(self, other: SymbolScope) -> None:
        """Add all that ``other`` holds; symbols and scenarios of one name are the same.

        Raises DimError, and changes nothing, where the assertions contradict each other.
        """
        merged = self.copy()
        merged.add_symbols(other)
        for scenario in other._scenarios:
            merged.add_scenario(scenario)
        for assertion in other:
            merged.add_assertion(assertion)
        self.__dict__.update(merged.__dict__)
        self._era = next(_ERAS)

    def add_symbols(self, other: SymbolScope) -> None:
        """Add the symbols of ``other``, without what is asserted of them.

        Raises DimError where one of them stands for something else here.
        """
        self._unnamed |= other._unnamed - self._names.keys()
        for name, dim in other._definitions:
            if self._definitions.dim_of(name) != dim:
                self.define(name, dim)
        self._add_symbols(other._names)

    def mark(self) -> tuple[int, int]:
        """Where the scope is now, for `rewind`."""
        return len(self._names), len(self._assertions)

    def rewind(self, mark: tuple[int, int]) -> None:
        """Take back the symbols and assertions that were added since `mark` was called."""
        names, assertions = mark
        for name in reversed(list(self._names)[names:]):
            del self._names[name]
            if name in self._definitions:
                self._definitions.remove(name)
                self._forget_theories()
            self._unnamed.discard(name)
            base, _, number = name.rpartition("_")
            self._fresh.pop(name, None)
            if base in self._fresh and number.isdecimal():
                self._fresh[base] = min(self._fresh[base], int(number[:18]) - 1)
        for assertion in list(self._assertions)[assertions:]:
            del self._assertions[assertion]
            self._forget_theories()

    def restrict(self, names: Iterable[str]) -> SymbolScope:
        """A scope with those of ``names`` that are here, every scenario, and the assertions about no other symbols."""
        wanted = frozenset(names)
        part = SymbolScope(name for name in self._names if name in wanted)
        part._unnamed = self._unnamed & wanted
        part._scenarios = dict(self._scenarios)
        part._assertions = {found: None for found in self._assertions if found.symbols <= wanted}
        for name, dim in self._definitions:
            if name in wanted:
                part.define(name, dim)
        return part

    def as_text(self) -> str:
        """The assertions, one per line, each as ``add_assertion`` reads it."""
        return "\n".join(map(str, self._assertions))

    def __repr__(self) -> str:
        return f"SymbolScope(names={list(self._names)}, assertions={[str(found) for found in self._assertions]})"

    def _free_name(self, prefix: str) -> str:
        name, number = prefix, self._fresh.get(prefix, 0)
        while name in self._names:
            number += 1
            name = f"{prefix}_{number}"
        self._fresh[prefix] = number
        return name

    def _add_symbols(self, names: Iterable[str]) -> None:
        for name in sorted(names) if isinstance(names, frozenset) else names:
            self._names.setdefault(name, len(self._names))

    def _check_scenario(self, scenario: str | None) -> None:
        if scenario is not None and scenario not in self._scenarios:
            known = ", ".join(self._scenarios) or "none"
            raise DimError(f"there is no scenario {scenario!r}; known scenarios: {known}", hint="add_scenario(name)")

    def theory(self, scenario: str | None = None) -> Theory:
        """What follows from the assertions that always hold, and from those of ``scenario``; not to be changed."""
        found = self._theories.get(scenario)
        if found is None:
            assertions = list(self.assertions(scenario))
            try:
                found = self._theories[scenario] = build_theory(assertions)
            except ContradictionError:
                # Seen only now, as what is seen depends on the order in which the assertions are gone through.
                raise explain_contradiction(assertions) from None
            for name, dim in self._definitions:
                found.define(name, dim)
        return found

    def _extend(self, added: Assertion) -> None:
        """Let what is known grow by an assertion. Raises DimError, and changes nothing, where that contradicts it."""
        touched = [None, *self._scenarios] if added.scenario is None else [added.scenario]
        for scenario in touched:
            known = scenario if scenario in self._scenarios else None
            theory = self.theory(known) if known == scenario else self.theory(known).copy()
            try:
                assume(theory, added)
            except ContradictionError:
                self._theories = {}
                raise explain_contradiction([*self.assertions(known), added]) from None
            self._theories[scenario] = theory

    def _forget_theories(self) -> None:
        self._theories, self._era = {}, next(_ERAS)

    def __getstate__(self) -> dict[str, object]:
        # What follows from the assertions is found out again when it is asked for.
        return {**self.__dict__, "_theories": {}}
