"""How the names of symbols are written.

A name is any text that is not empty. Plain identifiers are written as they are; any other name is written in quotes, as
``i"batch size"``, so that every printed expression can be read again.
"""

from __future__ import annotations

import re

from tract_core.errors import DimError

MAX_NAME = 256
"""Characters in a name."""
IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_.]*(?:/[A-Za-z_][A-Za-z0-9_.]*)*"
"""A plain name; a slash belongs to it where a letter follows, so ``a/b`` is one name and ``a/2`` a division."""
QUOTED = r'i"(?:[^"\\]|\\.)*"'
FUNCTIONS = frozenset({"min", "max", "broadcast", "floor"})

_ESCAPE = r'(?s)\\(?:(["\\nrt])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.?))'
_LETTERS = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = {character: f"\\{letter}" for letter, character in _LETTERS.items()}


def check_name(name: str) -> None:
    """Raises DimError unless ``name`` can name a symbol."""
    if not name:
        raise DimError("a symbol has no name", hint="give it a name of one character or more, such as 'N'")
    if len(name) > MAX_NAME:
        raise DimError(
            f"the symbol name {name[:24]!r}... has {len(name)} characters, at most {MAX_NAME} are allowed",
            hint="use a shorter name",
        )


def write_name(name: str) -> str:
    """``name`` as expressions show it, in quotes where it is not a plain identifier or is that of a function."""
    if re.fullmatch(IDENTIFIER, name) and name not in FUNCTIONS:
        return name
    return f'i"{"".join(map(_escape, name))}"'


def read_quoted(text: str) -> str:
    """The name written as ``text``, which matches ``QUOTED``. Raises DimError for an unknown escape."""
    return re.sub(_ESCAPE, _unescape, text[2:-1])


def _escape(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _unescape(match: re.Match[str]) -> str:
    letter, short, long, unknown = match.groups()
    if letter:
        return _LETTERS[letter]
    code = int(short or long or "110000", 16)
    if unknown is not None or code > 0x10FFFF:
        raise DimError(
            f"found the escape {match.group()!r} in a quoted name",
            hint=r"known escapes are \" \\ \n \r \t, \u with 4 and \U with 8 hexadecimal digits",
        )
    return chr(code)
