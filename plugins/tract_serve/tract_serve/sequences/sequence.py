"""One sequence: what it goes on with, and how far it is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class Sequence:
    """``going``: what it goes on with, ready for a turn; or it is laid aside, as ``frozen``.

    ``turns``: how many are done; ``stored``: how many were, when it was stored last, under that ``tag``. ``last``: the
    outputs of the last turn. ``used``: when that was. ``bytes``: of the state, when it was looked at last. ``lock``: is
    held by the request whose turn it is; ``waiting``: how many wait for it. ``is_gone``: no longer in the table.
    ``tried``: when it could not be laid aside. ``fed``: bytes that have come; ``looked_at``: how many of them when
    ``bytes`` was found out.
    """

    key: str
    name: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    going: Any = None
    frozen: bytes | None = None
    turns: int = 0
    stored: int = -1
    tag: object = None
    last: Any = None
    used: float = 0.0
    bytes: int = 0
    waiting: int = 0
    is_gone: bool = False
    tried: float = 0.0
    fed: int = 0
    looked_at: int = 0

    @property
    def is_there(self) -> bool:
        """Whether it can go on."""
        return self.going is not None or self.frozen is not None

    def begin(self, going: Any) -> None:
        """It begins anew."""
        self.going, self.frozen, self.turns, self.stored, self.tag, self.last = going, None, 0, -1, None, None
        self.bytes = self.fed = self.looked_at = 0

    def leave(self) -> None:
        """There is nothing to go on with."""
        self.begin(None)
