"""The parse table of the grammar, as `tract_nnef.syntax.write_table` wrote it down."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from tract_core.frozen import frozen

END: Final = "$END"
"""What stands behind the last word of a text."""


@frozen
class Production:
    """``size`` parts make an ``origin``.

    ``kept``: the places of the parts that ``function`` takes. Where that has no name, the rule makes its one such part.
    """

    origin: str
    size: int
    kept: tuple[int, ...]
    function: str

    @property
    def renames(self) -> bool:
        """Whether the rule has one part, which is what it makes."""
        return self.size == 1 and not self.function


@frozen
class ParseTable:
    """``words``: the next word of a text, or its end; a word is the group of its kind, the last group is no word.

    ``kinds``: the kind of each group, ``None`` where ``fixed`` tells it. ``fixed``: the words that are always the
    same. ``actions``, for each state: the state behind a word of a kind, or ``~index`` of the rule that ends before
    it. ``gotos``, for each state: the one behind what a rule has made. ``settled``, filled while texts are read:
    see `settle`. ``starts``, ``ends``: the first and the last state of what may be read alone, by its name.
    """

    words: re.Pattern[str]
    kinds: tuple[str | None, ...]
    fixed: dict[str, str]
    rules: tuple[Production, ...]
    actions: list[dict[str, int]]
    gotos: list[dict[str, int]]
    starts: dict[str, int]
    ends: dict[str, int]
    settled: dict[tuple[int, int, str], int]

    def settle(self, below: int, state: int, kind: str) -> int:
        """The state that comes of one, above ``below``, when all rules have ended that only give a part another name.

        A number is a primary, an expression with an index, a power, a product, a sum ...: with ten such steps for every
        number and name, half of the time would be theirs. ``kind``: of the word that comes next.
        """
        first = state
        while (step := self.actions[state].get(kind, 0)) < 0 and self.rules[~step].renames:
            state = self.gotos[below][self.rules[~step].origin]
        self.settled[below, first, kind] = state
        return state


@cache
def the_table() -> ParseTable:
    """The table, read when it is first asked for."""
    held: dict[str, Any] = json.loads(Path(__file__).with_name("table.json").read_text())
    patterns: dict[str, str] = held["patterns"]
    blanks = patterns.pop("BLANKS")
    fixed: dict[str, str] = held["fixed"]
    names = ["EXTENSION", *(name for name in patterns if name != "EXTENSION")]  # it begins like a name
    signs = sorted((word for word in fixed if not word.isalpha()), key=len, reverse=True)
    groups = [*(patterns[name] for name in names), "|".join(map(re.escape, signs)), "(?s:.)"]
    words = f"(?:{blanks})?+(?:" + "|".join(f"({group})" for group in groups) + r"|\Z)"
    return ParseTable(
        words=re.compile(words),
        kinds=(END, *names, None, None),
        fixed=fixed,
        rules=tuple(Production(origin, size, tuple(kept), function) for origin, size, kept, function in held["rules"]),
        actions=held["actions"],
        gotos=held["gotos"],
        starts=held["starts"],
        ends=held["ends"],
        settled={},
    )
