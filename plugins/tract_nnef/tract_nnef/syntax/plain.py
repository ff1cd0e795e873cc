"""Statements as most of them are, ``name = operator(a, 2, [b, c], key = [1, 2]);``, taken in a few steps each.

Nine of ten statements of a network are like that: an operator, applied to names, literals, and arrays and tuples of
these. The table takes a step per word and rule, which is three times as long. What is here is what the grammar makes of
such a statement, or nothing: then the table takes it, and says what is wrong with it where something is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tract_core.errors import ModelError
from tract_nnef.syntax.ast import (
    Argument,
    Array,
    Assignment,
    Expression,
    Invocation,
    Literal,
    Primitive,
    Tuple,
)
from tract_nnef.syntax.names import RESERVED

if TYPE_CHECKING:
    from tract_nnef.syntax.build import Build

MAX_DEPTH: Final = 8
"""Brackets in brackets, beyond which a statement is left to the table."""

MOST: Final = 1000
"""Arguments, and words in brackets, beyond which a statement is left to the table, which counts its words."""

_NAME: Final = "[A-Za-z_][A-Za-z0-9_]*+"
_NUMBER: Final = r"-?[0-9]++(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?"
_BLANKS: Final = "[ \t\r\n]*+"
_LONGEST: Final = 40
"""Characters of a number: one of more is left to the table, which has limits for it."""


def _brackets(depth: int) -> str:
    """The pattern of brackets with others in them, whatever else they hold."""
    inside = r"[^][()\"'#;]*+"
    return rf"[\[(]{inside}(?:{_brackets(depth - 1)}{inside})*+[\])]" if depth > 1 else rf"[\[(]{inside}[\])]"


_BEGIN: Final = re.compile(rf"({_NAME}){_BLANKS}={_BLANKS}({_NAME})(<scalar>)?\({_BLANKS}")
_ARGUMENT: Final = re.compile(
    rf'((?:({_NAME}){_BLANKS}=(?!=){_BLANKS})?(?:({_NAME})|({_NUMBER})|"([^"\\\n\r]*+)"|(?P<brackets>{_brackets(MAX_DEPTH)})))'
    rf"{_BLANKS}(?P<behind>[,)]){_BLANKS}"
)
_WORD: Final = re.compile(rf"{_BLANKS}(?:({_NAME})|({_NUMBER})|([\[\](),]))")
_END: Final = re.compile(rf"{_BLANKS};{_BLANKS}")
_CLOSES: Final = {"[": "]", "(": ")"}
_FLAGS: Final = {"true": Literal(True), "false": Literal(False)}
_SCALAR: Final = Primitive("scalar")


class PlainStatement(NamedTuple):
    """A statement, where the next one begins, and how many words it has at least."""

    value: Assignment
    end: int
    words: int


def plain_statement(text: str, at: int, build: Build) -> PlainStatement | None:
    """The statement at a place of the text, if it is a plain one."""
    begin = _BEGIN.match(text, at)
    if begin is None:
        return None
    target, operator, item = begin.groups()
    if target in RESERVED or operator in RESERVED:
        return None
    arguments: list[Argument] = []
    end, behind = begin.end(), ","
    while behind == "," and len(arguments) < MOST:
        found = _ARGUMENT.match(text, end)
        if found is None:
            return None
        written, behind = found.group(1, "behind")
        argument = build.arguments.get(written) or _argument(found, build)
        if argument is None:
            return None
        arguments.append(argument)
        end = found.end()
    closing = _END.match(text, end)
    if behind == "," or closing is None:
        return None
    invocation = Invocation(operator, tuple(arguments), _SCALAR if item else None)
    assignment = build.assignment(at, build.identifier(at, target), invocation)
    return PlainStatement(assignment, closing.end(), 4 + 2 * len(arguments))


def _argument(found: re.Match[str], build: Build) -> Argument | None:
    """An argument; what is written like it again is the same object."""
    written, key, name, number, quoted, brackets, _ = found.groups()
    if key in RESERVED:
        return None
    if brackets:
        value = _in_brackets(found.string, found.start("brackets"), build)
    else:
        value = Literal(quoted) if quoted is not None else _single(found.start(), name, number, build)
    if value is None:
        return None
    return build.arguments.setdefault(written, Argument(key, value))


def _single(at: int, name: str | None, number: str | None, build: Build) -> Expression | None:
    """A name or a number, as the rules of the grammar make it."""
    if name is not None:
        return _FLAGS.get(name) if name in RESERVED else build.identifier(at, name)
    if number is None or len(number) > _LONGEST:
        return None
    try:
        return build.unary(at, "-", build.number(at, number[1:])) if number[0] == "-" else build.number(at, number)
    except ModelError:
        return None  # the table knows where it is


def _in_brackets(text: str, at: int, build: Build) -> Expression | None:
    """The array or the tuple that begins there."""
    open_brackets, items = list[str](), [list[Expression]()]
    wanted = True  # an item, and no comma
    for _ in range(MOST):
        found = _WORD.match(text, at)
        if found is None:
            break
        at = found.end()
        name, number, sign = found.groups()
        if sign is None or sign in _CLOSES:
            if not wanted:
                break
            if sign is not None:
                open_brackets.append(sign)
                items.append([])
                continue
            value = _single(found.start(), name, number, build)
        elif sign == ",":
            if wanted:
                break
            wanted = True
            continue
        else:
            value = _closed(open_brackets.pop(), sign, items.pop(), wanted=wanted)
            if not open_brackets:
                return value
        if value is None:
            break
        items[-1].append(value)
        wanted = False
    return None


def _closed(opened: str, closed: str, items: list[Expression], *, wanted: bool) -> Expression | None:
    """An array or a tuple; nothing for what is no such thing, as brackets around a single value, and for empty ones."""
    if wanted or _CLOSES[opened] != closed or (closed == ")" and len(items) < 2):
        return None
    return Array(tuple(items)) if closed == "]" else Tuple(tuple(items))
