"""What follows from equalities and inequalities of sizes.

A `Theory` grows by what is assumed. An equality becomes something to put in the place of a symbol or an operation where
one of these can be isolated. Everything else becomes bounds of symbols, bounds of sums, and remainders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd
from typing import Any

from tract_core.dims.assertion import Assertion
from tract_core.dims.assuming import Assuming, ContradictionError, Mentions, mention
from tract_core.dims.atoms import Atom, Factor, Kind, dim_key, weight_of
from tract_core.dims.build import rebuild
from tract_core.dims.compare import less_or_equal, same_dim
from tract_core.dims.intervals import at_least, at_most, interval, without_term
from tract_core.dims.known import SIZE, Interval, KnownSizes, only_factor, single_atom
from tract_core.dims.remainder import isolated_remainder
from tract_core.dims.solve import symbol_name
from tract_core.dims.tdim import Dim, TDim, factor_dim, symbol
from tract_core.dims.values import symbols_of
from tract_core.dims.walk import rewrite
from tract_core.errors import DimError
from tract_core.limits import MAX_SIZE

_REWRITES = 64
"""How often a size is gone through until nothing changes. What stands for something is simpler, so few are needed."""

_DECIDED = 16
"""How many sums with operations are gone through again when the bounds of a symbol become sharper."""

_MAX_EXPLAINED = 32
"""Up to how many assertions are looked at one by one to find those that contradict each other."""

_NONE = frozenset[str]()


class Theory:
    """What is known of sizes. After a ContradictionError it is good for nothing."""

    def __init__(self) -> None:
        self._known = KnownSizes()
        self._values: dict[Factor, Dim] = {}
        """What stands for symbols and operations. None of these sizes leads back to what it stands for."""
        self._mentions: Mentions = {}
        """For each symbol, the sums with bounds and the operations with something in their place that mention it."""
        self._simplified: dict[TDim, Dim] = {}
        self.found: dict[Any, Any] = {}
        """What others made of what is known, under keys of theirs. It is gone when anything is learned."""
        self._answers: dict[tuple[Dim, Dim], bool | None] = {}
        """Whether sizes are the same, where that was asked."""
        self._fixed: list[str] = []
        """Symbols for which one value is left, and which it has not replaced yet."""
        self._replacing = False
        self.version = 0
        """Grows whenever anything is learned."""

    def copy(self) -> Theory:
        """The same knowledge, which grows on its own."""
        other = Theory()
        other._known, other._values = self._known.copy(), dict(self._values)
        other._mentions = {name: dict(things) for name, things in self._mentions.items()}
        other._simplified, other.version = dict(self._simplified), self.version
        return other

    def simplify(self, dim: Dim) -> Dim:
        """``dim`` with what stands for its parts in their place, and with what is certain decided."""
        if isinstance(dim, int):
            return dim
        found = self._simplified.get(dim)
        if found is None:
            found = self._simplified[dim] = self._decided(self._rewritten(dim, _NONE))
        return found

    def simplify_but(self, dim: Dim, names: frozenset[str]) -> Dim:
        """`simplify`, but these symbols stay."""
        if not names or isinstance(dim, int) or names.isdisjoint(dim.symbols):
            return self.simplify(dim)
        return self._rewritten(dim, names)

    def with_values(self, dim: Dim, but: frozenset[str] = _NONE) -> Dim:
        """``dim`` with what stands for its symbols in their place, except for those named by ``but``, and no more."""
        values = _Values(self._values, but)
        for _ in range(_REWRITES):
            found = {name: value for name in symbols_of(dim) if (value := values.get(name)) is not None}
            if not found:
                break
            dim = rewrite(dim, found)
        return dim

    def same(self, a: Dim, b: Dim) -> bool | None:
        """Whether ``a`` and ``b`` are equal: always, never, or ``None`` where it depends or was not found out."""
        if a == b:
            return True
        if isinstance(a, int) and isinstance(b, int):
            return False
        pair = a, b
        if pair not in self._answers:  # networks ask the same of many nodes
            self._answers[pair] = same_dim(self.simplify(a), self.simplify(b), self._known)
        return self._answers[pair]

    def less_or_equal(self, a: Dim, b: Dim) -> bool | None:
        """Whether ``a <= b``: always, never, or ``None`` where it depends or was not found out."""
        return less_or_equal(self.simplify(a), self.simplify(b), self._known)

    def bounds(self, dim: Dim) -> Interval:
        """Numbers that ``dim`` never falls below and never exceeds, ``None`` for one that was not found."""
        reduced = self.simplify(dim)
        return at_least(reduced, self._known), at_most(reduced, self._known)

    def assume_equal(self, a: Dim, b: Dim, replaceable: Callable[[TDim], Iterable[str]]) -> None:
        """``a`` equals ``b``. ``replaceable``: of a size that is 0, the symbols that may be replaced, best one first.

        Raises ContradictionError where it was found out that this cannot be.
        """
        difference = self.simplify(a - b)
        if isinstance(difference, int):
            if difference:
                raise ContradictionError
            return
        if difference.constant % gcd(*difference.terms.values()):
            raise ContradictionError
        self._check_not_below_zero(difference)
        self._check_not_below_zero(-difference)
        found = _fixed(difference) or isolated(difference, replaceable(difference))
        if found is not None:
            self._replace(*found)
        else:
            self._is_zero(difference)

    def assume_not_negative(self, dim: Dim) -> None:
        """``dim`` is 0 or more. Raises ContradictionError where it was found out that this cannot be."""
        self._assume([self.simplify(dim)])

    def assume_answer(self, atom: Atom, answer: int) -> None:
        """The comparison is true (1) or false (0). Raises ContradictionError where it was found out that it is not."""
        (dim,) = atom.args
        if atom.kind is Kind.GE:
            self._assume([self.simplify(dim if answer else -dim - 1)])
        elif answer:
            self.assume_equal(dim, 0, lambda _: ())
        elif self.same(dim, 0):
            raise ContradictionError

    def define(self, name: str, dim: TDim) -> None:
        """The symbol ``name`` is the name of ``dim``."""
        self._known.intervals[name] = self.bounds(dim)
        self._known.definitions[name] = dim
        self._fold(name, dim)
        self._changed()

    def _fold(self, name: str, dim: TDim) -> None:
        """Where a name stands for an operation, it is told by the name from now on, in whatever it occurs."""
        atom = single_atom(dim)
        if atom is not None and atom not in self._values:
            self._values[atom] = symbol(name)
            mention(self._mentions, atom, atom.symbols)

    def review_definitions(self, fits: Callable[[Dim], bool]) -> None:
        """Let sizes that have a name, and that are simple by now, take the place of their names.

        ``fits``: whether a size needs no name. Raises ContradictionError where something else stands for a name, and it
        was found out that it is not equal.
        """
        for name, dim in list(self._known.definitions.items()):
            simple = self._simplified_inside(dim)
            if fits(simple) and name not in symbols_of(simple):
                for atom in (single_atom(dim), single_atom(simple)):
                    if atom is not None and self._values.get(atom) == symbol(name):
                        self._forget(atom)
                del self._known.definitions[name]
                if name in self._values:
                    self.assume_equal(symbol(name), simple, lambda _: ())
                else:
                    self._values[name] = simple
                self._changed()

    def _simplified_inside(self, dim: TDim) -> Dim:
        """`simplify`, also for an operation that is told by its name."""
        atom = single_atom(dim)
        if atom is None:
            return self.simplify(dim)
        return self._decided(rebuild(atom.kind, [self.simplify(arg) for arg in atom.args], self._known))

    def _changed(self) -> None:
        self.version += 1
        self._simplified.clear()
        self._answers.clear()
        self.found.clear()
        self._known.forget_found()

    def _rewritten(self, dim: Dim, but: frozenset[str]) -> Dim:
        values = _Values(self._values, but)
        if not but:
            self._settle(symbols_of(dim))
        for _ in range(_REWRITES):
            after = rewrite(dim, values, self._known)
            if after == dim:
                break
            dim = after
        return dim

    def _settle(self, names: Iterable[str]) -> None:
        """Let what stands for these symbols mention none for which something stands, however long the way there is."""
        waiting = [name for name in names if name in self._values]
        while waiting:
            value = self._values[waiting[-1]]
            inside = self._replaced_in(value)
            deeper = [name for name in inside if self._replaced_in(self._values[name])]
            if not deeper:
                self._values[waiting.pop()] = rewrite(value, {name: self._values[name] for name in inside})
            waiting += deeper

    def _replaced_in(self, dim: Dim) -> list[str]:
        return [name for name in symbols_of(dim) if name in self._values]

    def _decided(self, dim: Dim) -> Dim:
        """The number that ``dim`` is, where it is one."""
        low, high = interval(dim, self._known)
        if self._known.lowest and not isinstance(dim, int):
            low = at_least(dim, self._known)
            high = None if low is None else at_most(dim, self._known)
        return low if low is not None and low == high else dim

    def _check_not_below_zero(self, dim: TDim) -> None:
        highest = at_most(dim, self._known)
        if highest is not None and highest < 0:
            raise ContradictionError

    def _is_zero(self, difference: TDim) -> None:
        """Use an equality of which no symbol is isolated."""
        found = isolated_remainder(difference)
        if found is not None:
            self._learn_remainder(*found)
        self._assume([difference, -difference])
        operation = _isolated_operation(difference)
        if operation is not None:
            self._replace_operation(*operation)

    def _assume(self, dims: Iterable[Dim]) -> None:
        assuming = Assuming(self._known, self._mentions)
        for dim in dims:
            assuming.add(dim)
        if assuming.learned:
            self._changed()
        self._fixed += assuming.fixed
        if not self._replacing:
            self._decide_sums(assuming.narrowed)
            self._replace_fixed()

    def _decide_sums(self, names: Iterable[str]) -> None:
        """Hand on the bounds of sums with operations that are decided, now that these symbols have sharper bounds."""
        self._replacing = True
        try:
            for name in names:
                for total in _with_operations(self._mentions.get(name, ())):
                    after = self.simplify(total)
                    if after != total and total in self._known.lowest:
                        self.assume_not_negative(after - self._known.lowest[total])
        finally:
            self._replacing = False

    def _replace_fixed(self) -> None:
        """Let numbers take the place of symbols for which one value is left, of others that follow from these, ..."""
        self._replacing = True  # one may fix the next, a thousand times over
        try:
            while self._fixed:
                name = self._fixed.pop()
                low, _ = self._known.intervals.get(name, SIZE)
                if name not in self._values and low is not None:
                    self._replace(name, low)
        finally:
            self._replacing = False

    def _learn_remainder(self, factor: Factor, divisor: int, left: int) -> None:
        """Dividing a factor's value by ``divisor`` leaves so much over; so does what was known of it before."""
        by, before = self._known.remainders.get(factor, (1, 0))
        common = gcd(by, divisor)
        if (left - before) % common:
            raise ContradictionError
        together, part = by * divisor // common, divisor // common
        if by < together <= MAX_SIZE:  # no size is so large that more would matter
            times = (left - before) // common * pow(by // common, -1, part) % part
            self._known.remainders[factor] = together, before + by * times
            self._changed()

    def _replace(self, name: str, value: Dim) -> None:
        """``value`` stands for the symbol ``name`` from now on, and has its bounds and its remainder."""
        low, high = self._known.intervals.pop(name, SIZE)
        left_over = self._known.remainders.pop(name, None)
        self._values[name] = value
        self._changed()
        again = [self._forget(thing) for thing in self._mentions.pop(name, ())]
        for forgotten, is_zero in again:
            if is_zero:
                self.assume_equal(forgotten, 0, lambda _: ())
            else:
                self.assume_not_negative(forgotten)
        if low is not None:
            self.assume_not_negative(value - low)
        if high is not None:
            self.assume_not_negative(high - value)
        if left_over is not None:
            self._hand_on(value, *left_over)

    def _hand_on(self, value: Dim, divisor: int, left: int) -> None:
        """What is left over of ``value`` when it is divided."""
        if isinstance(value, int):
            if value % divisor != left:
                raise ContradictionError
            return
        # The value, less what is left over, is so many times the divisor.
        found = isolated_remainder(TDim(value.terms, value.constant - left), divisor)
        if found is not None:
            self._learn_remainder(*found)

    def _replace_operation(self, atom: Atom, value: Dim) -> None:
        """``value``, which is simpler, stands for an operation from now on."""
        self._values[atom] = value
        self._changed()
        mention(self._mentions, atom, atom.symbols)
        for total in [total for total, _ in self._known.sums_with((atom,))]:
            self.assume_not_negative(self._forget(total)[0])

    def _forget(self, thing: TDim | Atom) -> tuple[Dim, bool]:
        """Take out what is known of a sum or an operation: a size that is 0 or more, or one that is 0."""
        symbols = thing.symbols if isinstance(thing, Atom) else symbols_of(thing)
        for name in symbols & self._mentions.keys():
            del self._mentions[name][thing]
        self._changed()
        if isinstance(thing, Atom):
            self._known.remainders.pop(thing, None)
            return factor_dim(thing) - self._values.pop(thing), True
        return thing - self._known.remove_sum(thing), False


class _Values:
    """What stands for symbols and operations, without names that stay."""

    __slots__ = ("_but", "_values")

    def __init__(self, values: dict[Factor, Dim], but: frozenset[str]) -> None:
        self._values = values
        self._but = but

    def get(self, key: Any, /) -> Dim | None:
        """What stands for a symbol or an operation; where several lead there, in one step from now on."""
        if key in self._but or key not in self._values:
            return None
        passed: list[Factor] = []
        found = self._values[key]
        while len(passed) < len(self._values) and (following := self._leads_on(found)) is not None:
            passed.append(key)
            key, found = following, self._values[following]
        if not self._but:
            self._values.update(dict.fromkeys(passed, found))
        return found

    def _leads_on(self, dim: Dim) -> Factor | None:
        """The symbol or operation that a size is, where something stands for that too."""
        factor = only_factor(dim)
        return factor if factor is not None and factor in self._values and factor not in self._but else None


def _with_operations(things: Iterable[TDim | Atom]) -> list[TDim]:
    """The latest of the sums among ``things`` that have an operation as a term."""
    sums = [one for one in things if isinstance(one, TDim) and any(isinstance(term[0], Atom) for term in one.terms)]
    return sums[-_DECIDED:]


def isolated(difference: TDim, names: Iterable[str]) -> tuple[str, Dim] | None:
    """The first of ``names`` that stands alone, and the size that it equals where ``difference`` is 0."""
    common = gcd(*difference.terms.values())
    for name in names:
        factor = difference.terms.get((name,), 0)
        others = without_term(difference, (name,))
        if abs(factor) == common and name not in symbols_of(others):
            return name, -others // common if factor > 0 else others // common
    return None


def _fixed(difference: TDim) -> tuple[str, int] | None:
    """The one symbol of ``difference``, and the number that it is where ``difference`` is 0."""
    (((name, *more), factor), *others) = difference.terms.items()
    return None if more or others or not isinstance(name, str) else (name, -difference.constant // factor)


def _isolated_operation(difference: TDim) -> tuple[Atom, Dim] | None:
    """An operation that stands alone, and a simpler size that it equals where ``difference`` is 0."""
    common = gcd(*difference.terms.values())
    for (first, *more), factor in difference.terms.items():
        if isinstance(first, Atom) and not more and abs(factor) == common:
            others = without_term(difference, (first,))
            value = -others // common if factor > 0 else others // common
            if (weight_of(value), dim_key(value)) < (first.weight, dim_key(factor_dim(first))):
                return first, value
    return None


def build_theory(assertions: Iterable[Assertion]) -> Theory:
    """What follows from ``assertions``. Raises ContradictionError where it sees that they cannot all hold."""
    theory = Theory()
    for assertion in assertions:
        assume(theory, assertion)
    return theory


def assume(theory: Theory, assertion: Assertion) -> None:
    """Let ``assertion`` hold. Raises ContradictionError where it was found out that it cannot."""
    if assertion.op != "==":
        theory.assume_not_negative(assertion.difference())
        return
    # The side that is nothing but a symbol is meant as a definition of it.
    sides = [name for side in (assertion.left, assertion.right) if (name := symbol_name(side)) is not None]
    theory.assume_equal(assertion.left, assertion.right, lambda difference: [*sides, *reversed(lone(difference))])


def lone(dim: TDim) -> list[str]:
    """The symbols that are a whole term of ``dim``."""
    return [first for first, *more in dim.terms if not more and isinstance(first, str)]


def contradicts(assertions: Iterable[Assertion]) -> bool:
    """Whether ``assertions`` can be shown to contradict each other."""
    try:
        build_theory(assertions)
    except ContradictionError:
        return True
    return False


def explain_contradiction(assertions: list[Assertion]) -> DimError:
    """The error for ``assertions`` that contradict each other, the last of which is new."""
    *others, new = assertions
    if contradicts([new]):
        return DimError(
            f"the assertion {new} cannot hold: symbols stand for integers that are 0 or more",
            hint="correct or remove the assertion",
        )
    if len(others) > _MAX_EXPLAINED:
        others = [other for other in others if other.symbols & new.symbols]
    for other in tuple(others) if len(others) <= _MAX_EXPLAINED else ():
        fewer = [kept for kept in others if kept != other]
        if contradicts([*fewer, new]):
            others = fewer
    names = ", ".join(map(str, others[:_MAX_EXPLAINED])) + (", ..." if len(others) > _MAX_EXPLAINED else "")
    return DimError(f"the assertion {new} contradicts {names}", hint="correct or remove one of them")
