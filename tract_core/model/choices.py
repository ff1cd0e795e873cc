"""Which of several ways to wire a node is taken, where only the nodes behind it can tell.

Who wires such a node asks `choose`. Should a node behind it not fit, `wire_nodes` comes back to the node, wires it in
the next way, and goes on from there. Each choice is made a few times at most: what this takes grows with the number
of nodes times the number of choices, whatever the file holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, cast

from tract_core.errors import ContradictoryFacts, DimError, FactError, MissingOperator, TractError, Unsupported

MAX_REVERSALS: Final = 6
"""How often one choice is made anew."""

Place = tuple[str, ...]
"""The names of the nodes, and of the graphs in them, that lead to where a choice is made."""


@dataclass(slots=True)
class _Choice:
    """``way``: the one that is taken now, of ``ways``. ``is_open``: whether it may be another one.

    ``on_trail``: whether the graph as it is wired now has it.
    """

    ways: int
    is_open: bool
    way: int = 0
    on_trail: bool = False

    def turn(self) -> None:
        """To the next way; when the last one did not fit either, back to the first, for good."""
        self.way = (self.way + 1) % self.ways
        self.is_open = self.way != 0


@dataclass(slots=True)
class Choices:
    """The choices of one analysis. ``trail``: where they were made, in order."""

    trail: list[Place] = field(default_factory=list[Place])
    path: list[str] = field(default_factory=list[str])
    _made: dict[Place, _Choice] = field(default_factory=dict[Place, _Choice])
    _reversals: Counter[Place] = field(default_factory=Counter[Place])

    def way(self, name: str, ways: int) -> int:
        """The way that is taken at ``name``, counted from 0."""
        place = (*self.path, name)
        choice = self._made.setdefault(place, _Choice(ways, self._reversals[place] < MAX_REVERSALS))
        if not choice.on_trail:
            choice.on_trail = True
            self.trail.append(place)
        return choice.way

    def last_open(self, start: int, end: int) -> int | None:
        """The last choice that may be another one, between two positions of the trail."""
        return next((at for at in reversed(range(start, end)) if self._made[self.trail[at]].is_open), None)

    def has_open_inside(self) -> bool:
        """Whether a choice that was made in the graphs of the node where we are may be another one."""
        depth, here = len(self.path), tuple(self.path)
        inside = takewhile(lambda place: place[:depth] == here, reversed(self.trail))
        return any(self._made[place].is_open and len(place) > depth + 1 for place in inside)

    def reverse(self, at: int, start: int) -> None:
        """Make the choice at a position of the trail anew, forget those after it, and go back to ``start``."""
        self._made[self.trail[at]].turn()
        self._reversals[self.trail[at]] += 1
        for place in self.trail[at + 1 :]:
            del self._made[place]
        for place in self.trail[start : at + 1]:
            self._made[place].on_trail = False
        del self.trail[start:]


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


def choose(name: str, ways: int) -> int:
    """Which of ``ways`` is taken at ``name``, a number from 0: the one to be preferred, unless it did not fit.

    Outside an analysis, 0.
    """
    choices = _CHOICES.get()
    return 0 if choices is None else choices.way(name, ways)


def choices_inside_are_open() -> bool:
    """Whether a choice in the graphs of the node that is wired may be another one: who cannot use it may raise."""
    choices = _CHOICES.get()
    return choices is not None and choices.has_open_inside()


@contextmanager
def inside(name: str) -> Generator[None]:
    """What is chosen while this lasts is chosen inside a node, or a graph of a node, of this name."""
    choices = _CHOICES.get() or Choices()
    choices.path.append(name)
    try:
        yield
    finally:
        choices.path.pop()


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
