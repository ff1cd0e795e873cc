"""How often this process was told to look for plugins again: for who remembers what was installed."""

from __future__ import annotations

from typing import Final

_TIMES: Final[list[None]] = []


def times_refreshed() -> int:
    """How often it was."""
    return len(_TIMES)


def note_refresh() -> None:
    """It is told once more."""
    _TIMES.append(None)
