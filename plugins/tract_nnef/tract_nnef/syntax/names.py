"""Which names NNEF can write as they are, and which versions of it there are."""

from __future__ import annotations

import re
from typing import Final

BUILT_IN: Final = frozenset(
    ("shape_of", "length_of", "range_of", "integer", "scalar", "logical", "string", "complex"),
)
"""Reserved words that are the names of functions."""
RESERVED: Final = BUILT_IN | frozenset(
    ("version", "extension", "graph", "fragment", "tensor", "true", "false", "inf", "for", "in", "if", "else", "yield"),
)
"""Words that have a meaning of their own: no tensor, parameter or fragment has such a name."""

LONGEST_LABEL: Final = 200
"""Characters of a label, behind which come a number and ``.dat``."""


def is_plain(name: str) -> bool:
    """Whether NNEF can write a name as it is: letters of ASCII, digits, ``_``, no digit first, and not reserved."""
    return re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) is not None and name not in RESERVED


def plain_name(name: str) -> str:
    """A name that NNEF can write, for any name. Two names may get the same one, which the caller has to tell apart.

    Each character that NNEF does not know becomes ``_``, as does what a name lacks to begin like one or to mean
    nothing else.
    """
    plain = re.sub("[^A-Za-z0-9_]", "_", name)
    if not plain or plain[0].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if plain in RESERVED else plain


def spellings(name: str) -> tuple[str, ...]:
    """What a name becomes where only identifiers can be written: here, and as the established engine has it.

    That writes ``_`` in front of whatever begins like no identifier, also of what has become one.
    """
    plain = plain_name(name)
    theirs = re.sub("[^A-Za-z0-9_]", "_", name)
    theirs = theirs if re.match("[A-Za-z_]", name) else f"_{theirs}"
    return (plain,) if theirs == plain else (plain, theirs)


def is_version(text: str) -> bool:
    """Whether a document of this version can be read: 1.0, and any later one with the same first number."""
    return re.fullmatch(r"1(\.[0-9]*)?", text) is not None


def plain_label(name: str) -> str:
    """The label of a tensor, for any name: what all systems take as the name of a file. Two may get the same one."""
    return re.sub("[^A-Za-z0-9_.-]|^[.]", "_", name)[:LONGEST_LABEL] or "_"
