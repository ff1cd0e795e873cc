"""What one rendering of a template may take: steps, time, and the sizes of all that it makes.

A template comes with a model, from whoever made that. It cannot be stopped from outside, so whatever it does
repeatedly, and every value that it makes, is counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from time import monotonic
from typing import Any, Final, NoReturn, cast

from tract_core.errors import LimitExceeded

MOST_STEPS: Final = 300_000
"""Rounds of loops, calls, and pieces of text."""

MOST_SECONDS: Final = 2.0

MOST_CHARACTERS: Final = 4_000_000
"""Of a value written out, and of all that is written together; a conversation of a million tokens has as many."""

PART: Final = 40
"""Characters that an element of a list counts as, besides its own."""

MOST_MADE: Final = 200_000_000
"""Of all values together, those included that are dropped again."""

MOST_NUMBER: Final = 100_000
"""Of a number that something is called with, as the width of a text."""

MOST_BITS: Final = 256
"""Of an integer that is computed."""


class RenderBudget:
    """Counts for one rendering. Each method raises LimitExceeded when there is too much."""

    def __init__(self) -> None:
        self._steps = 0
        self._written = 0
        self._made = 0
        self._end = monotonic() + MOST_SECONDS

    def step(self) -> None:
        """Something that can be repeated."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            refuse(f"takes more than {MOST_STEPS:,} steps")
        if monotonic() > self._end:
            refuse(f"takes more than {MOST_SECONDS:g} s")

    def rounds(self, values: Iterable[Any]) -> Iterator[Any]:
        """The values, each of which is a step."""
        for value in values:
            self.step()
            yield value

    def written(self, text: str) -> str:
        """A text that is written somewhere."""
        self.step()
        self._written += len(text)
        if self._written > MOST_CHARACTERS:
            refuse(f"writes more than {MOST_CHARACTERS:,} characters")
        return text

    def made(self, value: Any) -> Any:
        """A value that was made, which stays as it is."""
        self._made += weight(value)
        if self._made > MOST_MADE:
            refuse(f"makes values of more than {MOST_MADE:,} characters")
        return value

    def joined(self, values: Iterable[Any], between: str = "") -> str:
        """Values as texts, one behind the other, with something between them."""
        texts: list[str] = []
        length = 0
        for value in values:
            self.made(value)
            texts.append(str(value))
            length += len(texts[-1]) + len(between)
            fits("makes a text", length)
        return self.made(between.join(texts))

    def called(self, values: Iterable[Any]) -> None:
        """Look at what a function is called with."""
        self.step()
        for value in values:
            parts: Iterable[Any] = cast("Iterable[Any]", value) if isinstance(value, (list, tuple)) else [value]
            for part in parts:
                if isinstance(part, int) and abs(part) > MOST_NUMBER:
                    refuse(f"calls something with the number {part}")


def weight(value: object) -> int:
    """How many characters a value has when it is written out, about, each part as often as it is in it.

    Raises LimitExceeded for more than a value may have.
    """
    if isinstance(value, str):
        found = len(value)
    elif isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            refuse("computes a number that is too large")
        found = 1
    else:
        found = _weight_of_parts(value, 0)
    fits("makes a value", found)
    return found


def _weight_of_parts(value: object, found: int) -> int:
    if isinstance(value, str):
        return found + len(value)
    if isinstance(value, Mapping):
        several = cast("Mapping[object, object]", value)
        inner: Iterable[object] = (part for pair in several.items() for part in pair)
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = cast("Iterable[object]", value)
    else:
        return found + 1
    for part in inner:
        found = _weight_of_parts(part, found + PART)
        fits("makes a value", found)
    return found


def fits(does: str, characters: int) -> None:
    """Raise LimitExceeded for a value that is too long to be made."""
    if characters > MOST_CHARACTERS:
        refuse(f"{does} of more than {MOST_CHARACTERS:,} characters")


def refuse(problem: str) -> NoReturn:
    """Raise LimitExceeded."""
    hint = "the template is part of the model: take one from a source that you trust, or give the prompt as one text"
    raise LimitExceeded(f"it {problem}", where="chat template", hint=hint)
