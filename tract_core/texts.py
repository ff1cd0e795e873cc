"""Texts that somebody else wrote, made fit for people to read.

A character *steers* when a terminal or a browser does something else than show it: control characters (which move the
cursor, change colours or set the title), line separators, and marks that turn the writing direction. A report with one
in it can say something else than it does. Names of nodes and tensors never hold one; every other text of a file is
shown with its steering characters escaped.
"""

from __future__ import annotations

import re
from typing import Final

_MARKS: Final = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"
"""Line separators, and marks that turn the writing direction."""
_STEERING: Final = f"[\x00-\x1f\x7f-\x9f{_MARKS}\ud800-\udfff]"
"""Control characters and marks; halves of characters, which no terminal can be sent, too. Few runs meet any, so the
pattern is compiled by the first that does."""
_STEERING_IN_LINES: Final = f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_MARKS}\ud800-\udfff]"
"""The same without the tabulator and the end of a line."""

_LETTERS: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def steers(text: str) -> bool:
    """Whether a character of ``text`` does something else than to be shown."""
    return not text.isprintable() and re.search(_STEERING, text) is not None


def printable(text: str) -> str:
    r"""``text`` in one line, with the characters that steer escaped as JSON has it, as in ``\n`` and ``\u001b``."""
    return text if text.isprintable() else re.sub(_STEERING, _escaped, text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines, whose ends and tabulators stay."""
    return text if text.isprintable() else re.sub(_STEERING_IN_LINES, _escaped, text)


LONGEST_SIZE: Final = 80
"""Characters of a symbolic size in a message."""


def with_short_sizes(text: str) -> str:
    """``text`` with the middle left out of symbolic sizes that are longer than `LONGEST_SIZE`.

    Who reads a message wants to see where and what; ``tract MODEL dump`` shows sizes whole.
    """
    if len(text) <= LONGEST_SIZE:
        return text
    return re.sub(_SIZES.format(LONGEST_SIZE + 1), lambda found: _parts_shortened(found.group()), text)


_SIZES: Final = r"[\w.+\-*/#()<>=,]{{{},}}"
"""Sizes, also several with commas between them, of so many characters at least."""


def _parts_shortened(sizes: str) -> str:
    parts, depth, begin = list[str](), 0, 0
    for place, character in enumerate(sizes):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(sizes[begin:place])
            begin = place + 1
    return ",".join(map(_shortened, [*parts, sizes[begin:]]))


def _shortened(size: str) -> str:
    is_path = size.startswith(("/", ".")) or not re.search(r"[+*#]|m(?:ax|in)\(", size)
    if is_path or len(size) <= LONGEST_SIZE:
        return size
    return f"{size[: LONGEST_SIZE - 23]}...{size[-20:]}"


def _escaped(found: re.Match[str]) -> str:
    return _LETTERS.get(found.group(), f"\\u{ord(found.group()):04x}")
