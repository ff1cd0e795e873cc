"""Which of several ways to wire a node is taken, where only the nodes behind it can tell.

Who wires such a node asks `choose`. Should a node behind it not fit, `wire_nodes` comes back to the node, wires it in
the next way, and goes on from there. Each choice is made a few times at most: what this takes grows with the number
of nodes times the number of choices, whatever the file holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

from tract_core.errors import ContradictoryFacts, DimError, FactError, MissingOperator, TractError, Unsupported

MAX_REVERSALS: Final = 16
"""How often one choice is made anew."""

Place = tuple[str, ...]
"""The names of the nodes, and of the graphs in them, that lead to where a choice is made, and what it is about."""


@dataclass(slots=True)
class _Choice:
    """``way``: the one that is taken now, of ``ways``; ``first``: the one to be preferred.

    ``left``: how many have not been tried. ``at``: its position on the trail, -1 while it is not there.
    """

    ways: int
    first: int
    way: int
    left: int
    at: int = -1


class Asked(NamedTuple):
    """A choice that somebody asked for: its position on the trail, and whether a way is left, or the first was left."""

    at: int
    is_open: bool
    is_astray: bool


@dataclass(slots=True)
class Choices:
    """The choices of one analysis.

    ``trail``: what is chosen in the graph as it is wired now, in the order in which it was chosen first. ``asked``: the
    same for every time that somebody asked.
    """

    trail: list[Place] = field(default_factory=list[Place])
    asked: list[Place] = field(default_factory=list[Place])
    path: list[str] = field(default_factory=list[str])
    _made: dict[Place, _Choice] = field(default_factory=dict[Place, _Choice])
    _reversals: Counter[Place] = field(default_factory=Counter[Place])

    def way(self, about: str, ways: int, first: int) -> int:
        """The way that is taken, counted from 0; the same for all that ask about one thing, here or further in."""
        places = ((*self.path[:depth], about) for depth in range(len(self.path)))
        place = next((one for one in places if self._is_on_trail(one)), (*self.path[:-1], about))
        choice = self._made.setdefault(place, _Choice(ways, first, first, self._untried(place, ways)))
        if choice.at < 0:
            choice.at = len(self.trail)
            self.trail.append(place)
        self.asked.append(place)
        return choice.way

    def _is_on_trail(self, place: Place) -> bool:
        choice = self._made.get(place)
        return choice is not None and choice.at >= 0

    def _untried(self, place: Place, ways: int) -> int:
        return ways - 1 if self._reversals[place] < MAX_REVERSALS else 0

    def asked_for(self, start: int, end: int | None = None) -> Iterator[Asked]:
        """The choices on the trail that were asked for between two questions."""
        for place in self.asked[start:end]:
            choice = self._made.get(place)
            if choice is not None and choice.at >= 0:
                yield Asked(choice.at, choice.left > 0, choice.way != choice.first)

    def reverse(self, at: int) -> None:
        """Take the next way at a position of the trail, and forget the choices after it."""
        place = self.trail[at]
        choice = self._made[place]
        choice.way, choice.left = (choice.way + 1) % choice.ways, choice.left - 1
        self._reversals[place] += 1
        for later in self.trail[at + 1 :]:
            del self._made[later]
        del self.trail[at + 1 :]

    def settle(self, at: int) -> None:
        """Take the preferred way at a position of the trail, for good."""
        choice = self._made[self.trail[at]]
        choice.way, choice.left = choice.first, 0

    def rewind(self, trail: int, asked: int) -> None:
        """Go back to where the trail and the questions were so long. What was chosen will be chosen again."""
        for place in self.trail[trail:]:
            self._made[place].at = -1
        del self.trail[trail:], self.asked[asked:]


_CHOICES: ContextVar[Choices | None] = ContextVar("choices", default=None)


@contextmanager
def choosing() -> Generator[Choices]:
    """The choices of the analysis around this; new ones where this is the outermost."""
    choices = _CHOICES.get()
    if choices is not None:
        yield choices
        return
    choices = Choices()
    token = _CHOICES.set(choices)
    try:
        yield choices
    finally:
        _CHOICES.reset(token)


@contextmanager
def undecided() -> Generator[None]:
    """What is wired inside is wired in the ways to be preferred, for somebody who only wants to know about it."""
    token = _CHOICES.set(None)
    try:
        yield
    finally:
        _CHOICES.reset(token)


def choose(about: str, ways: int, first: int = 0) -> int:
    """Which of ``ways`` is taken, a number from 0: the first one, unless it did not fit.

    ``about``: what is chosen; who asks about the same gets the same answer, in the graph of this node and those inside
    it. Outside an analysis, the first one.
    """
    choices = _CHOICES.get()
    return first if choices is None or not choices.path else choices.way(about, ways, first)


@contextmanager
def inside(name: str) -> Generator[None]:
    """What is chosen while this lasts is chosen inside a node, or a graph of a node, of this name."""
    choices = _CHOICES.get() or Choices()
    choices.path.append(name)
    try:
        yield
    finally:
        choices.path.pop()


def questions() -> int:
    """How often `choose` was called so far, for `may_reconsider`."""
    choices = _CHOICES.get()
    return 0 if choices is None else len(choices.asked)


def may_reconsider(since: int) -> bool:
    """Whether what was chosen since `questions` gave that number may be chosen anew: who cannot use it may raise."""
    choices = _CHOICES.get()
    return choices is not None and any(one.is_open or one.is_astray for one in choices.asked_for(since))


def is_about_facts(error: TractError) -> bool:
    """Whether an error may not come up where types, ranks or sizes are others.

    What is wrong with a file whatever the sizes, as an operator that nobody knows, or asks for too much, is no such
    error.
    """
    cause = error.__cause__
    if isinstance(cause, ExceptionGroup):
        parts = cast("ExceptionGroup[Exception]", cause).exceptions
        return all(isinstance(part, TractError) and is_about_facts(part) for part in parts)
    if isinstance(cause, TractError):
        return is_about_facts(cause)
    about = (FactError, DimError, ContradictoryFacts, Unsupported)
    return isinstance(error, about) and not isinstance(error, MissingOperator)
