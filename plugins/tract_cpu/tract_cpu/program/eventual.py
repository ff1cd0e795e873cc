"""Sizes that may never be known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.dims import Dim


@frozen
class Eventual:
    """A size, or `ENDLESS` as long as one of its symbols has no value, as the length of a stream that goes on."""

    size: Dim


ENDLESS: Final = 1 << 62
"""More positions than any stream has; so many that as many again can be added."""
