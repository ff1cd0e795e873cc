"""What follows from a list of assertions.

An equality is turned into a substitution where one of its symbols can be isolated. Everything else becomes facts
(expressions that are 0 or more) and, from those, bounds of single symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from tract_core.dims.assertion import Assertion
from tract_core.dims.bounds import NOTHING, SIZE, Interval, Known, at_least, at_most, interval, without_term
from tract_core.dims.tdim import Dim, TDim
from tract_core.dims.walk import rewrite, substitute, symbols_of
from tract_core.errors import DimError

_ROUNDS = 4
"""How often facts are gone through: bounds of one symbol can sharpen those of the next."""


class ContradictionError(Exception):
    """No values of the symbols satisfy the assertions."""


@dataclass(frozen=True, slots=True)
class Theory:
    """What is known of symbols, ready for use."""

    substitutions: Mapping[str, Dim] = field(default_factory=dict[str, Dim])
    """The size that always equals a symbol; none of these sizes has a symbol that is replaced itself."""
    known: Known = NOTHING

    def reduce(self, dim: Dim) -> Dim:
        """``dim`` with replaced symbols, and with what is certain decided."""
        reduced = rewrite(dim, self.substitutions, self.known)
        if isinstance(reduced, int):
            return reduced
        low = at_least(reduced, self.known)
        return low if low is not None and low == at_most(reduced, self.known) else reduced

    def excludes(self, assertion: Assertion) -> bool:
        """Whether ``assertion`` can be shown not to hold."""
        difference = substitute(assertion.difference(), self.substitutions)
        high, low = at_most(difference, self.known), at_least(difference, self.known)
        too_small = high is not None and high < 0
        return too_small or (assertion.op == "==" and low is not None and low > 0)


def build_theory(assertions: Iterable[Assertion]) -> Theory:
    """What follows from ``assertions``. Raises ContradictionError where it sees that they cannot all hold."""
    substitutions: dict[str, Dim] = {}
    facts: list[Dim] = []
    for assertion in assertions:
        difference = substitute(assertion.difference(), substitutions)
        if assertion.op != "==":
            facts.append(difference)
            continue
        isolated = _isolate(difference, assertion)
        if isolated is None:
            facts += [difference, -difference]
            continue
        name, value = isolated
        substitutions = {other: substitute(size, {name: value}) for other, size in substitutions.items()}
        substitutions[name] = value
        facts.append(value)
    symbolic = _symbolic_facts(facts, substitutions)
    intervals = _symbol_intervals(symbolic)
    fixed: dict[str, Dim] = {name: low for name, (low, high) in intervals.items() if low is not None and low == high}
    if fixed:
        substitutions = {name: substitute(size, fixed) for name, size in substitutions.items()} | fixed
        symbolic = _symbolic_facts(symbolic, fixed)
    return Theory(substitutions, Known(intervals, tuple(fact for fact in symbolic if not _is_bound(fact))))


def contradicts(assertions: list[Assertion]) -> bool:
    """Whether ``assertions``, the last of which is new, can be shown to contradict each other."""
    try:
        if build_theory(assertions[:-1]).excludes(assertions[-1]):
            return True
        build_theory(assertions)
    except (ContradictionError, DimError):
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
    for other in tuple(others):
        fewer = [kept for kept in others if kept != other]
        if contradicts([*fewer, new]):
            others = fewer
    names = ", ".join(map(str, others))
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


def _symbol_intervals(facts: list[TDim]) -> dict[str, Interval]:
    """The bounds of symbols for which every fact can be 0 or more. Raises ContradictionError where there are none."""
    intervals: dict[str, Interval] = {}
    for _ in range(_ROUNDS):
        before = dict(intervals)
        for fact in facts:
            _narrow(fact, intervals)
        if intervals == before:
            break
    return intervals


def _narrow(fact: TDim, intervals: dict[str, Interval]) -> None:
    """Where ``a*x + rest >= 0``, ``rest`` cannot exceed its upper bound, so ``x`` has one too."""
    for product, factor in fact.terms.items():
        name = product[0]
        if len(product) > 1 or not isinstance(name, str):
            continue
        rest = interval(without_term(fact, product), Known(intervals))[1]
        if rest is None:
            continue
        low, high = intervals.get(name, SIZE)
        if factor > 0:
            low = max(low or 0, -(rest // factor))
        else:
            limit = rest // -factor
            high = limit if high is None else min(high, limit)
        if high is not None and high < (low or 0):
            raise ContradictionError
        intervals[name] = low, high


def _is_bound(fact: TDim) -> bool:
    """Whether the bounds of single symbols say all that ``fact`` says."""
    (first, *others) = fact.terms
    return not others and len(first) == 1 and isinstance(first[0], str)
