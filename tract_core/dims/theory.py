"""What follows from a list of assertions.

An equality is turned into a substitution where one of its symbols can be isolated. Everything else becomes facts
(expressions that are 0 or more) and, from those, bounds of single symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from math import gcd

from tract_core.dims.assertion import Assertion
from tract_core.dims.bounds import SIZE, Interval, Known, at_least, at_most, interval, without_term
from tract_core.dims.tdim import Dim, TDim
from tract_core.dims.walk import rewrite, substitute, symbols_of
from tract_core.errors import DimError
from tract_core.frozen import frozen

_ROUNDS = 3
"""How often all facts are gone through again: bounds of one symbol can sharpen those of the next."""

_MAX_EXPLAINED = 32
"""Up to how many assertions are looked at one by one to find those that contradict each other."""


class ContradictionError(Exception):
    """No values of the symbols satisfy the assertions."""


@frozen
class Theory:
    """What is known of symbols, ready for use."""

    substitutions: Mapping[str, Dim] = field(default_factory=dict[str, Dim])
    """The size that always equals a symbol; none of these sizes has a symbol that is replaced itself."""
    known: Known = field(default_factory=Known)

    def reduce(self, dim: Dim) -> Dim:
        """``dim`` with replaced symbols, and with what is certain decided."""
        reduced = rewrite(dim, self.substitutions, self.known)
        if isinstance(reduced, int):
            return reduced
        low = at_least(reduced, self.known)
        return low if low is not None and low == at_most(reduced, self.known) else reduced

    def extended(self, assertion: Assertion) -> Theory:
        """What is known when ``assertion`` holds as well. Raises ContradictionError where it sees that it cannot."""
        difference = substitute(assertion.difference(), self.substitutions)
        facts = [difference, -difference] if assertion.op == "==" else [difference]
        for fact in facts:
            highest = at_most(fact, self.known)
            if highest is not None and highest < 0:
                raise ContradictionError
        isolated = _isolate(difference, assertion) if assertion.op == "==" else None
        return self._with_facts(facts) if isolated is None else self._with_substitution(*isolated)

    def _with_substitution(self, name: str, value: Dim) -> Theory:
        """``name`` always equals ``value``, which thereby has its bounds."""
        low, high = self.known.intervals.get(name, SIZE)
        bounds = [] if low is None else [value - low]
        bounds += [] if high is None else [high - value]
        intervals = {other: found for other, found in self.known.intervals.items() if other != name}
        replaced = Theory(
            {other: substitute(size, {name: value}) for other, size in self.substitutions.items()} | {name: value},
            Known(intervals, tuple(_symbolic_facts(self.known.facts, {name: value}))),
        )
        return replaced._with_facts([*bounds, *(fact for fact in replaced.known.facts if fact not in self.known.facts)])

    def _with_facts(self, facts: Sequence[Dim]) -> Theory:
        added = _symbolic_facts(facts, {})
        symbolic = list(dict.fromkeys([*self.known.facts, *added]))
        intervals = dict(self.known.intervals)
        _narrow_all(added, symbolic, intervals)
        fixed = _fixed_symbols(intervals, self.substitutions)
        if fixed:
            substitutions = {name: substitute(size, fixed) for name, size in self.substitutions.items()} | fixed
            return Theory(substitutions, Known(intervals))._with_facts(_symbolic_facts(symbolic, fixed))
        return Theory(self.substitutions, Known(intervals, tuple(fact for fact in symbolic if not _is_bound(fact))))


def build_theory(assertions: Iterable[Assertion]) -> Theory:
    """What follows from ``assertions``. Raises ContradictionError where it sees that they cannot all hold."""
    theory = Theory()
    for assertion in assertions:
        theory = theory.extended(assertion)
    return theory


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


def _isolate(difference: Dim, assertion: Assertion) -> tuple[str, Dim] | None:
    """A symbol and the size that it equals where ``difference`` is 0; ``None`` where no symbol stands alone."""
    if isinstance(difference, int):
        return None
    common = gcd(*difference.terms.values())
    if difference.constant % common:
        raise ContradictionError
    candidates = [name for name in _lone_symbols(difference) if abs(difference.terms[name,]) == common]
    if not candidates:
        return None
    # The side that is nothing but a symbol is meant as a definition of it.
    defined = [name for side in (assertion.left, assertion.right) for name in candidates if _is_symbol(side, name)]
    name = (defined or candidates[-1:])[0]
    others = without_term(difference, (name,))
    return name, -others // common if difference.terms[name,] > 0 else others // common


def _lone_symbols(dim: TDim) -> list[str]:
    """The symbols that occur in one term and are all of it."""
    return [
        product[0]
        for product in dim.terms
        if len(product) == 1
        and isinstance(product[0], str)
        and product[0] not in symbols_of(without_term(dim, product))
    ]


def _is_symbol(dim: Dim, name: str) -> bool:
    return isinstance(dim, TDim) and dim.constant == 0 and dim.terms == {(name,): 1}


def _symbolic_facts(facts: Sequence[Dim], substitutions: Mapping[str, Dim]) -> list[TDim]:
    """``facts`` after ``substitutions``, less mere numbers. Raises ContradictionError for a negative one."""
    replaced = [substitute(fact, substitutions) for fact in facts]
    if any(isinstance(fact, int) and fact < 0 for fact in replaced):
        raise ContradictionError
    return [fact for fact in dict.fromkeys(replaced) if isinstance(fact, TDim)]


def _narrow_all(added: list[TDim], facts: list[TDim], intervals: dict[str, Interval]) -> None:
    """Sharpen ``intervals`` until ``added``, and with them all ``facts``, can be 0 or more.

    Raises ContradictionError where no value is left for a symbol.
    """
    changed = [_narrow(fact, intervals) for fact in added]
    for _ in range(_ROUNDS):
        if not any(changed):
            return
        changed = [_narrow(fact, intervals) for fact in facts]


def _narrow(fact: TDim, intervals: dict[str, Interval]) -> bool:
    """Where ``a*x + rest >= 0``, ``rest`` cannot exceed its upper bound, so ``x`` has one too; whether any changed."""
    known = Known(intervals)
    highs = {product: interval(TDim({product: factor}, 0), known)[1] for product, factor in fact.terms.items()}
    unbounded = [product for product, high in highs.items() if high is None]
    if len(unbounded) > 1:
        return False
    total = fact.constant + sum(high for high in highs.values() if high is not None)
    changed = False
    for product in unbounded or fact.terms:
        name = product[0]
        if len(product) == 1 and isinstance(name, str):
            before = intervals.get(name, SIZE)
            after = _narrowed(before, fact.terms[product], total - (highs[product] or 0))
            changed = changed or after != before
            intervals[name] = after
    return changed


def _narrowed(values: Interval, factor: int, rest: int) -> Interval:
    """The part of ``values`` for which ``factor * value + rest >= 0``."""
    low, high = values
    if factor > 0:
        low = -(rest // factor) if low is None else max(low, -(rest // factor))
    else:
        limit = rest // -factor
        high = limit if high is None else min(high, limit)
    if low is not None and high is not None and high < low:
        raise ContradictionError
    return low, high


def _fixed_symbols(intervals: Mapping[str, Interval], substitutions: Mapping[str, Dim]) -> dict[str, Dim]:
    """The symbols, not yet replaced, for which one value is left."""
    return {
        name: low
        for name, (low, high) in intervals.items()
        if low is not None and low == high and name not in substitutions
    }


def _is_bound(fact: TDim) -> bool:
    """Whether the bounds of single symbols say all that ``fact`` says."""
    (first, *others) = fact.terms
    return not others and len(first) == 1 and isinstance(first[0], str)
