"""Where in the stream a pulse is, for operators that do something at its beginning or its end."""

from __future__ import annotations

from tract_core.dims import Dim, evaluate, symbols_of
from tract_core.model.session import Session
from tract_core.plugins.keys import Array


class Position:
    """A base of states that keep nothing but how many positions of the stream came before."""

    def __init__(self) -> None:
        self.position = 0

    def advance(self, count: int) -> int:
        """The position at which this pulse begins; the next one begins ``count`` positions later."""
        now = self.position
        self.position += count
        return now

    def freeze(self) -> int:
        """The position."""
        return self.position

    def thaw(self, frozen: int) -> None:
        """Go back to a snapshot."""
        self.position = frozen


def known(size: Dim, session: Session) -> int | None:
    """A size in elements; ``None`` as long as one of its symbols, as the length of the signal, has no value."""
    if symbols_of(size) <= session.symbols.keys():
        return evaluate(size, session.symbols)
    return None


def filled(x: Array, axis: int, places: slice, value: Array | float) -> Array:
    """A copy of ``x`` with ``value`` at some places of an axis."""
    result = x.copy()
    result[(slice(None),) * axis + (places,)] = value
    return result


def inside(first: int, last: int, begin: int, count: int) -> slice:
    """The positions from ``first`` up to and without ``last``, counted in a pulse that begins at ``begin``."""
    return slice(min(max(first - begin, 0), count), min(max(last - begin, 0), count))


def span(places: slice) -> int:
    """How many places there are."""
    return max(places.stop - places.start, 0)
