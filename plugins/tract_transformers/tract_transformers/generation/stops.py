"""Texts at which an answer ends, found wherever tokens begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tract_core.errors import InputError


class Stops:
    """Lets text through, up to and without the first of some texts: the one that ends first.

    What may become one is held back.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._stops = tuple(stops)
        self._held = ""

    def take(self, text: str) -> tuple[str, bool]:
        """What is certain now; and whether a stop was found, behind which nothing more is let through."""
        self._held += text
        places = [(place + len(stop), place) for stop in self._stops if (place := self._held.find(stop)) >= 0]
        if places:
            found, self._held = self._held[: min(places)[1]], ""
            return found, True
        kept = max((_overlap(self._held, stop) for stop in self._stops), default=0)
        cut = len(self._held) - kept
        found, self._held = self._held[:cut], self._held[cut:]
        return found, False

    def finish(self) -> str:
        """What was held back, as no stop came of it."""
        found, self._held = self._held, ""
        return found


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of ``text`` are the beginning of ``stop``, which is not in it whole."""
    most = min(len(text), len(stop) - 1)
    return next((count for count in range(most, 0, -1) if stop.startswith(text[-count:])), 0)


def checked_stops(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """The texts that somebody gives, one or several. Raises InputError for what is none, and for an empty one."""
    given: Any = [] if stop is None else [stop] if isinstance(stop, str) else stop
    if not isinstance(given, (list, tuple, set, frozenset)):
        raise InputError(f"stop is a {type(given).__name__}, wanted a text or a list of texts")
    several = list(cast("Sequence[Any]", given))
    for one in several:
        if not isinstance(one, str) or not one:
            raise InputError(f"stop holds {one!r}, wanted a text that is not empty")
    return tuple(several)
