"""Whose turn it is: some requests at a time, and those that wait in turns between clients.

A client that asks for much waits for itself: another one with nothing under way goes first, and has spare places that
who has something under way does not get.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

from tract_core.frozen import frozen
from tract_serve.errors import Busy, TooLate, TooMany


@frozen
class Client:
    """Who asks. ``host``: by which clients are told apart in any case, an address or a token.

    ``user``: who of these it says it is.
    """

    host: str
    user: Hashable = ""


@frozen
class Places:
    """``most``: at a time. ``spare``: further ones for hosts with nothing under way, half of them for such users.

    ``waiting``: requests that may wait. ``of_one``: that may wait or be under way for one host. ``timeout_s``: for how
    many seconds they may wait; ``None`` for any time.
    """

    most: int
    spare: int = 0
    waiting: int = 1024
    of_one: int = 256
    timeout_s: float | None = None


@dataclass(slots=True)
class _Share:
    """What a host or a client has. ``running``: under way; ``last``: the number of its last turn."""

    running: int = 0
    last: int = 0
    open: int = 0


@dataclass(slots=True)
class _Line(_Share):
    """The requests of a client that wait, in order."""

    waiting: deque[asyncio.Future[None]] = field(default_factory=deque[asyncio.Future[None]])


class FairTurns:
    """Places for requests. Used by the thread of one event loop."""

    def __init__(self, name: str, places: Places) -> None:
        """``name``: of the model that they are of."""
        self._name, self._places = name, places
        self._lines: dict[Client, _Line] = {}
        self._hosts: dict[str, _Share] = {}
        self._numbers = count(1)
        self.running = 0
        self.waiting = 0

    def check(self, client: Client, wanted: int = 1) -> None:
        """Raises Busy where so many more may not wait, TooMany where it is this client who has too many."""
        where, places = f"model {self._name!r}", self._places
        share = self._hosts.get(client.host)
        there = 0 if share is None else share.open
        if there + wanted > max(places.of_one, places.most):
            problem = f"{there} requests of this client wait or are under way, and more may not"
            raise TooMany(problem, where=where, hint="wait for some of them")
        if self.waiting + wanted > places.waiting:
            raise Busy(f"{self.waiting} requests wait for it, and more may not", where=where, hint="ask again later")

    @asynccontextmanager
    async def of(self, client: Client) -> AsyncGenerator[None]:
        """Inside, the client has a place. Raises as `check`, and TooLate where it waited too long."""
        self.check(client)
        line, share = self._line(client), self._hosts.setdefault(client.host, _Share())
        line.open, share.open = line.open + 1, share.open + 1
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            await self._wait(line, turn)
            yield
        finally:
            if turn.done() and not turn.cancelled():
                line.running, share.running, self.running = line.running - 1, share.running - 1, self.running - 1
            line.open, share.open = line.open - 1, share.open - 1
            if not line.open:
                del self._lines[client]
            if not share.open:
                del self._hosts[client.host]
            self._next()

    def _line(self, client: Client) -> _Line:
        return self._lines.setdefault(client, _Line())

    async def _wait(self, line: _Line, turn: asyncio.Future[None]) -> None:
        line.waiting.append(turn)
        self.waiting += 1
        self._next()
        patience = self._places.timeout_s
        try:
            async with asyncio.timeout(patience):
                await asyncio.shield(turn)
        except TimeoutError:
            problem = f"it waited for {patience:g} seconds, and was not begun"
            raise TooLate(problem, where=f"model {self._name!r}", hint="ask again later") from None
        finally:
            if not turn.done():
                turn.cancel()
                line.waiting.remove(turn)
                self.waiting -= 1

    def _next(self) -> None:
        """Give places to those who wait, as long as there are any for them."""
        while self.waiting:
            lines = sorted((client for client, line in self._lines.items() if line.waiting), key=self._rank)
            chosen = next((client for client in lines if self.running < self._places_for(client)), None)
            if chosen is None:
                return
            line, share = self._lines[chosen], self._hosts[chosen.host]
            line.last = share.last = next(self._numbers)
            line.running, share.running, self.running = line.running + 1, share.running + 1, self.running + 1
            self.waiting -= 1
            line.waiting.popleft().set_result(None)

    def _places_for(self, client: Client) -> int:
        """How many there are: more for a host with nothing under way, and some more for such a user of another."""
        places = self._places
        if not self._hosts[client.host].running:
            return places.most + places.spare
        return places.most + (0 if self._lines[client].running else places.spare // 2)

    def _rank(self, client: Client) -> tuple[int, int, int, int]:
        """Who goes first: the host with the least under way, of several the one whose last turn is longest ago."""
        share, line = self._hosts[client.host], self._lines[client]
        return share.running, share.last, line.running, line.last
