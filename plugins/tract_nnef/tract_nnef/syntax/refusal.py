"""What is said of a text that breaks the rules: the place, what is there, what was wanted, and the line itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tract_core.errors import CorruptModel, ModelError
from tract_core.texts import printable, steers
from tract_nnef.syntax.table import END

SHOWN: Final = 80
"""Characters of a line that are shown."""

_EXPRESSION: Final = frozenset(
    ("NAME", "NUMBER", "STRING", "TRUE", "FALSE", "INF", "LSQB", "LPAR", "PLUS", "MINUS", "NOT")
)
_TYPE: Final = frozenset(("NAME", "QMARK", "LPAR"))
_TARGET: Final = frozenset(("NAME", "LSQB", "LPAR"))
_OPERATOR: Final = frozenset(
    (
        "AND",
        "OR",
        "LESS",
        "LESS_EQUAL",
        "MORE",
        "MORE_EQUAL",
        "EQUAL",
        "NOT_EQUAL",
        "PLUS",
        "MINUS",
        "TIMES",
        "OVER",
        "POWER",
    )
)
_GROUPS: Final = (
    (_EXPRESSION, _EXPRESSION, "an expression"),
    (_OPERATOR, _OPERATOR | {"IN", "IF", "LSQB", "LPAR", "TYPE_ARGUMENT"}, "an operator"),
    (_TYPE, _TYPE, "a type"),
    (_TARGET, _TARGET, "a name to assign to"),
)
"""Kinds of words that are one thing to who writes a text, those that go without saying then, and how it is called."""
_KINDS: Final = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a text in quotes",
    "EXTENSION": "an extension",
    "TYPE_ARGUMENT": "a type in <>",
    "TYPE_DEFAULT": "a type in <>",
    END: "the end of the text",
}


def refusal(
    text: str, at: int, problem: str, *, kind: type[ModelError] = CorruptModel, hint: str | None = None
) -> ModelError:
    """The error of that kind about what stands in ``text`` from the character ``at`` on."""
    begin = text.rfind("\n", 0, at) + 1
    line = text.count("\n", 0, at) + 1
    column = at - begin
    return kind(f"{problem}\n{_shown(text, begin, at)}", where=f"line {line}, column {column + 1}", hint=hint)


def _shown(text: str, begin: int, at: int) -> str:
    """The line that begins at ``begin``, or what of it is near ``at``, and below it a mark under that place."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    first = begin if at - begin < SHOWN - 10 else at - SHOWN // 2
    last = min(end, first + SHOWN)
    cut = "".join(" " if sign in "\t\r" else "\ufffd" if steers(sign) else sign for sign in text[first:last])
    before, after = "… " * (first > begin), " …" * (last < end)
    return f"    {before}{cut}{after}\n    {' ' * (len(before) + at - first)}^"


def shown(word: str) -> str:
    """A word of a text in quotes, in one line, and cut where it is long."""
    half = SHOWN // 2
    cut = printable(word[:half]) + "…" * (len(word) > half)
    return cut if word[:1] in ("'", '"') else f"'{cut}'"


def wanted(kinds: Iterable[str], fixed: Mapping[str, str]) -> str:
    """How the kinds of words that could stand somewhere are called, one of which was wanted."""
    left = set(kinds)
    said: list[str] = []
    for group, covered, name in _GROUPS:
        if group <= left:
            left -= covered
            said.append(name)
    spelled = {kind: word for word, kind in fixed.items()}
    said += sorted({_KINDS.get(kind) or f"'{spelled[kind]}'" for kind in left})
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"
