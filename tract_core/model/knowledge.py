"""The conditions of a model, and what is known of its sizes because of them.

A condition holds in every run that is not refused. So it is knowledge of all sizes of the model, whichever operator
wanted it and in whichever order operators were wired. The model of a branch or a loop has conditions of its own, which
count when it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from tract_core.dims import Dim, SymbolScope, substitute, symbol, symbols_of
from tract_core.dims.assuming import ContradictionError
from tract_core.dims.atoms import Atom
from tract_core.dims.definitions import is_short
from tract_core.dims.tdim import TDim
from tract_core.dims.theory import Theory, assume, lone
from tract_core.dims.walk import comparisons_in
from tract_core.errors import DimError
from tract_core.model.conditions import Condition

_MOST_CONTRADICTING: Final = 4
"""Conditions that contradict others, after which no further ones are used: no run satisfies the model anyway."""

_MOST_CASES: Final = 4
"""Comparisons in one condition of which it is looked at what would follow from either answer."""

_BELOW: Final = -1
"""Stands for the lower bound of a size of which none is known."""

_NEVER: Final = (ContradictionError, DimError)
"""What shows that sizes cannot be as was said: no values satisfy it, or one of them contradicts itself."""

_ROUNDS: Final = 3
"""How often conditions that say one of several things are gone through again."""


class Learned:
    """What follows from a scope and from conditions, as far as they have been followed.

    ``contradicting``: conditions that cannot hold beside those before them. What these say is not used.
    """

    def __init__(self, scope: SymbolScope, below: Learned | None, values: Mapping[str, Dim]) -> None:
        self._scope = scope
        self._era = scope.era
        self._below = below
        self._values = dict(values)
        self.contradicting: list[Condition] = []
        self._last: int | None = None
        """After how many conditions no more are followed."""
        self._uses_definitions = True
        self._begin()

    def is_of(self, scope: SymbolScope) -> bool:
        """Whether it is about a scope, from which nothing was taken back since."""
        return self._scope is scope and self._era == scope.era

    def follow(self, conditions: Mapping[Condition, str]) -> None:
        """Use what was added to the scope, and to the conditions."""
        if self._scope.counts() != (self._asserted, self._defined):
            try:
                self._follow_scope()
            except _NEVER:  # between what is asserted now and a condition before
                self._begin()
        while self._followed < (count := len(conditions) if self._last is None else self._last):
            for condition in list(islice(conditions, self._followed, count)):
                self._followed += 1
                try:
                    self._use(condition)
                except _NEVER:
                    self.contradicting.append(condition)
                    if len(self.contradicting) == _MOST_CONTRADICTING:
                        self._last = self._followed
                    self._begin()
                    break

    def review(self) -> None:
        """Use conditions that say one of several things where only one of them is left, and names of simple sizes."""
        for _ in range(_ROUNDS):
            if self._reviewed == self.theory.version:
                return
            self._reviewed = self.theory.version
            for condition in self._choices:
                try:
                    _use_choice(self, condition)
                except _NEVER:
                    self.contradicting.append(condition)
                    self._begin()
                    return
            if not self._review_definitions():
                return

    def _review_definitions(self) -> bool:
        """Whether no definition contradicts what else is known. One that does has no run; none is used any more."""
        if self._uses_definitions:
            try:
                self.theory.review_definitions(is_short)
            except _NEVER:
                self._uses_definitions = False
                self._begin()
        return self._uses_definitions

    def _begin(self) -> None:
        """Start again with what does not come from conditions."""
        below, scope = self._below, self._scope
        self.theory = (scope.theory() if below is None else below.theory).copy()
        self._asserted, self._defined = scope.counts() if below is None else (below._asserted, below._defined)
        self._choices: list[Condition] = [] if below is None else list(below._choices)
        self._followed = 0
        self._reviewed = -1
        for name, dim in self._values.items():
            try:
                self.equal(symbol(name), dim, [name])
            except _NEVER:
                del self._values[name]
                self._begin()
                return

    def _follow_scope(self) -> None:
        asserted, defined = self._scope.counts()
        for assertion in islice(self._scope, self._asserted, None) if asserted > self._asserted else ():
            if assertion.scenario is None:
                assume(self.theory, assertion)
        for name, dim in islice(self._scope.definitions, self._defined, None) if defined > self._defined else ():
            self.theory.define(name, dim)
        self._asserted, self._defined = asserted, defined

    def _use(self, condition: Condition) -> None:
        if condition in self.contradicting:
            return
        if condition.relation != "<=":
            self._use_cases(condition)
        if condition.relation == "==":
            self.equal(condition.left, condition.right)
        elif condition.relation == "<=":
            self.theory.assume_not_negative(condition.right - condition.left)
        else:
            self._choices.append(condition)
            _use_choice(self, condition)

    def _use_cases(self, condition: Condition) -> None:
        """Of a comparison in a condition, use the answer that is left, where the other one contradicts the condition.

        ``x[-n:]`` is the last ``n`` elements, but all of them where ``n`` is 0, and only the former may be fit to use.
        """
        for atom in _comparisons(condition):
            answers = _by_cases(self.theory, condition, atom)
            left = [value for value, answer in answers.items() if answer is not False]
            if len(left) == 1:
                self.theory.assume_answer(atom, left[0])

    def equal(self, a: Dim, b: Dim, first: Sequence[str] = ()) -> None:
        """Two sizes are equal. ``first``: symbols that are best replaced. Raises ContradictionError."""
        self.theory.assume_equal(a, b, lambda difference: [*first, *self._replaceable(difference)])

    def _replaceable(self, difference: TDim) -> list[str]:
        """Symbols for which something else may stand, the latest first.

        A symbol that somebody named only gives way to another one, so that sizes are told in the words of the file.
        """
        names = lone(difference)
        renames = len(names) == len(difference.terms) == 2 and difference.constant == 0
        scope = self._scope
        found = [name for name in names if renames or scope.is_unnamed(symbol(name))]
        return sorted(found, key=scope.position, reverse=True)


def _comparisons(condition: Condition) -> Iterator[Atom]:
    """Some of the comparisons in a condition."""
    found = dict.fromkeys((*comparisons_in(condition.left), *comparisons_in(condition.right)))
    return islice(found, _MOST_CASES)


def _by_cases(theory: Theory, condition: Condition, atom: Atom) -> dict[int, bool | None]:
    """For each answer that a comparison can have, whether the condition holds then, as `Condition.answer` says."""
    found: dict[int, bool | None] = {}
    for value in (0, 1):
        case = theory.copy()
        try:
            case.assume_answer(atom, value)
            found[value] = condition.answer(case.same, case.less_or_equal)
        except ContradictionError:
            continue
        except DimError:
            found[value] = False
    return found


def _use_choice(learned: Learned, condition: Condition) -> None:
    """Use what is certain about a condition that says one of several things."""
    a, b, theory = condition.left, condition.right, learned.theory
    low_a, low_b = (_BELOW if (low := theory.bounds(dim)[0]) is None else low for dim in (a, b))
    if condition.relation == "0->0":
        if low_a >= 0 and low_b >= 1:
            theory.assume_not_negative(a - 1)
    elif low_a >= 2 and (low_b >= 2 or condition.relation == "->"):
        learned.equal(a, b)
    elif low_a >= 2 or (condition.relation == "->" and low_b >= 1):
        small, large = (b, a) if low_a >= 2 else (a, b)
        theory.assume_not_negative(small - 1)
        theory.assume_not_negative(large - small)
    elif low_b >= 2:
        theory.assume_not_negative(a - 1)
        theory.assume_not_negative(b - a)


class Conditions:
    """The conditions of one model, each with the node that wanted it first. Picklable.

    What they make certain is used for all sizes of the model, whatever the order in which they came.
    """

    def __init__(self) -> None:
        self._origins: dict[Condition, str] = {}
        self._names: set[str] = set()
        self._values: dict[str, Dim] = {}
        """Symbols that no run binds any more, each with what it is."""
        self._below: Conditions | None = None
        self._learned: Learned | None = None

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

    def known(self, scope: SymbolScope) -> Theory:
        """What follows from what is asserted in the scope, and from the conditions; not to be changed."""
        return self._learn(scope).theory

    def answer(self, condition: Condition, scope: SymbolScope) -> bool | None:
        """Whether a condition follows from what is here and in the scope (yes), contradicts it (no), or neither."""
        if condition in self or condition.turned() in self:
            return True  # the same is wanted by many nodes
        return self._answer(condition, scope)

    def _answer(self, condition: Condition, scope: SymbolScope) -> bool | None:
        """The same, whether it is here or not."""
        known = self.known(scope)
        try:
            found = condition.answer(known.same, known.less_or_equal)
        except DimError:
            return False
        for atom in _comparisons(condition) if found is None else ():
            answers = set(_by_cases(known, condition, atom).values())
            if len(answers) == 1:
                found = answers.pop()
        return found

    def simplified(self, condition: Condition, scope: SymbolScope) -> Condition:
        """A condition in which what is known is decided; as it is where its sizes contradict themselves."""
        try:
            return condition.mapped(self.known(scope).simplify)
        except DimError:
            return condition

    def contradict(self, scope: SymbolScope) -> bool:
        """Whether it was found out, when they were followed, that they never hold all together."""
        return bool(self._learn(scope).contradicting)

    def cannot_hold(self, scope: SymbolScope) -> bool:
        """The same, with a look at each of them, too."""
        return self.contradict(scope) or any(self._answer(one, scope) is False for one in self._origins)

    def add(self, condition: Condition, origin: str) -> None:
        """Rely on ``condition`` from now on."""
        if condition not in self:
            self._origins[condition] = origin
            self._names |= condition.symbols

    def define(self, name: str, dim: Dim) -> None:
        """A symbol that no run binds any more: it is ``dim``."""
        self._values[name] = dim
        self._learned = None

    @property
    def definitions(self) -> Mapping[str, Dim]:
        """Symbols that no run binds any more, each with what it is."""
        return dict(self._values)

    def review(self, scope: SymbolScope) -> None:
        """Let each condition be used with what is known by now, from those behind it too."""
        self._learn(scope).review()

    def bound_by(self, names: frozenset[str], scope: SymbolScope) -> list[tuple[Condition, str]]:
        """Every condition as a run sees it that binds these symbols: others are replaced by what they stand for."""
        if self._names <= names:
            return list(self)
        known = self.known(scope)
        found = [(condition.mapped(lambda dim: known.with_values(dim, names)), origin) for condition, origin in self]
        return [(condition, origin) for condition, origin in found if condition.answer() is not True]

    def rewind(self, count: int) -> None:
        """Forget all but the first ``count`` conditions, and what was known by the others."""
        kept = list(self)[:count]
        if len(kept) < len(self):
            self._origins, self._names, self._learned = {}, set(), None
            for condition, origin in kept:
                self.add(condition, origin)

    def substitute(self, values: Mapping[str, Dim]) -> Conditions:
        """With symbols replaced; what then holds for certain is left out. Raises DimError as `Condition` does."""
        other = Conditions()
        for condition, origin in self:
            replaced = condition.substitute(values)
            if replaced.answer() is not True:
                other.add(replaced, origin)
        for name, dim in self._values.items():
            after = substitute(dim, values)
            if name not in values and name not in symbols_of(after):
                other.define(name, after)
        return other

    def about(self, names: frozenset[str]) -> Conditions:
        """Those whose symbols are all among ``names``."""
        other = Conditions()
        for condition, origin in self:
            if condition.symbols <= names:
                other.add(condition, origin)
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
        other._below = self
        return other

    def __getstate__(self) -> dict[str, Any]:
        # What follows is found out again when it is asked for.
        return {**self.__dict__, "_learned": None}

    def _learn(self, scope: SymbolScope) -> Learned:
        if self._below is not None and not self._origins and not self._values:
            return self._below._learn(scope)
        if self._learned is None or not self._learned.is_of(scope):
            self._learned = Learned(scope, None if self._below is None else self._below._learn(scope), self._values)
        self._learned.follow(self._origins)
        return self._learned
