"""What clients have sent, fit for messages."""

from __future__ import annotations

from typing import Final

from tract_core.texts import printable

_LONGEST: Final = 40
"""Characters of a value in a message."""

_LONGEST_MESSAGE: Final = 4000


def shown(value: object) -> str:
    """A value of a client, short."""
    if isinstance(value, str):
        return printable(repr(value[:_LONGEST]))
    return printable(repr(value)[:_LONGEST]) if isinstance(value, (int, float)) else f"a {type(value).__name__}"


def told(text: str) -> str:
    """The begin of a message, which is enough of one that holds what a client has sent."""
    return text[:_LONGEST_MESSAGE]
