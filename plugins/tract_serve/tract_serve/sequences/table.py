"""The sequences of one model: what each goes on with, in which order its requests come, and when it is left."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from math import inf
from time import monotonic
from typing import Final

from tract_serve.errors import Busy, NotFound, TooLate
from tract_serve.logs import log
from tract_serve.sequences.asked import AskedTurn
from tract_serve.sequences.keeper import Freezing, Keeper
from tract_serve.sequences.sequence import Sequence
from tract_serve.sequences.store import NotStored
from tract_serve.sequences.waiting import over

MOMENT_S: Final = 1.0
"""Seconds without a request after which the state of a sequence is laid aside: in the store, if there is one."""

_AGAIN_S: Final = 5.0
"""Seconds after which a state is tried to be stored again, where that went wrong."""


class SequenceTable:
    """The sequences of one model. Used by the thread of one event loop.

    A model that is loaded again, and is the same one, takes the table of the one before.
    """

    def __init__(self, name: str, keeper: Keeper, *, most: int, waiting: int, idle_s: float, most_bytes: int) -> None:
        """``most``: sequences; ``waiting``: requests that wait for one; ``idle_s``: seconds without any.

        ``most_bytes``: of all states.
        """
        self._name, self._keeper = name, keeper
        self._most, self._most_waiting, self._most_bytes = most, waiting, most_bytes
        self.idle_s = idle_s
        self._known: OrderedDict[str, Sequence] = OrderedDict()
        self._sweeping: asyncio.Task[None] | None = None
        self.freezing: Freezing | None = None

    @property
    def keeper(self) -> Keeper:
        """What has states stored."""
        return self._keeper

    def __len__(self) -> int:
        return len(self._known)

    @property
    def bytes(self) -> int:
        """Of all states, as far as they were looked at."""
        return sum(one.bytes for one in self._known.values())

    def find(self, key: str) -> Sequence | None:
        """A sequence that is in memory."""
        return self._known.get(key)

    @asynccontextmanager
    async def turn(self, asked: AskedTurn, patience: float | None) -> AsyncGenerator[Sequence]:
        """Inside, the sequence is that of one request; the next one waits until it has ended.

        It can go on, or has nothing to go on with where the request starts it. Raises Busy where there are too many,
        or too many wait; TooLate; NotFound for a sequence that was not started; BadRequest where it cannot go on.
        """
        sequence = await self._entered(asked, patience)
        try:
            if asked.starts:
                await self._keeper.forget(sequence)
                sequence.leave()
            else:
                await self._resume(sequence, asked)
            yield sequence
        finally:
            if sequence.is_there and not sequence.is_gone:
                sequence.used = monotonic()
                self._known.move_to_end(sequence.key)
                self._sweep()
            elif not sequence.waiting:
                self.drop(sequence)
            sequence.lock.release()

    async def _entered(self, asked: AskedTurn, patience: float | None) -> Sequence:
        while True:
            sequence = self._known.get(asked.key) or await self._admitted(asked)
            if sequence.waiting >= self._most_waiting:
                problem = f"{sequence.waiting} requests wait for {asked.name}, and more may not"
                raise Busy(problem, where=self._where, hint="ask again later")
            sequence.waiting += 1
            try:
                async with asyncio.timeout(patience):
                    await sequence.lock.acquire()
            except TimeoutError:
                problem = f"it waited for {patience:g} seconds for the requests of {asked.name} before it"
                raise TooLate(problem, where=self._where, hint="allow more time, or ask again later") from None
            finally:
                sequence.waiting -= 1
            if not sequence.is_gone:
                return sequence
            sequence.lock.release()

    async def _admitted(self, asked: AskedTurn) -> Sequence:
        """Room for one more. Raises Busy where there is none."""
        while len(self._known) >= self._most:
            if await self._made_room():
                continue
            problem = f"{len(self._known)} sequences are kept, and no more are taken"
            raise Busy(problem, where=self._where, hint="ask again later, or end some (sequence_end)")
        if self.bytes > self._most_bytes:
            problem = f"the sequences that are kept take {self.bytes} bytes, and no more are taken"
            raise Busy(problem, where=self._where, hint="ask again later, or end some (sequence_end)")
        return self._known.setdefault(asked.key, Sequence(asked.key, asked.name, used=monotonic()))

    async def _made_room(self) -> bool:
        """Leave the one that was used longest ago, if it was idle for too long, or once it is in the store."""
        one = next(filter(self._is_free, self._known.values()), None)
        if one is None or one.tried > monotonic() - _AGAIN_S:
            return False
        if self._keeper.stores:
            async with one.lock:
                await self._lay_aside(one)
        elif one.used < monotonic() - self.idle_s:
            one.leave()
        if one.is_there or one.waiting:
            return False
        self.drop(one)
        return True

    async def _resume(self, sequence: Sequence, asked: AskedTurn) -> None:
        """Have it ready for a turn, from memory or from the store."""
        if sequence.is_there and await self._keeper.is_outdated(sequence):
            sequence.leave()
        if not sequence.is_there and not await self._keeper.fetch(sequence):
            problem = f"{asked.name} was not started here, or has ended"
            hint = f"start it (sequence_start); one without a request for {self.idle_s:g} seconds has ended"
            raise NotFound(problem, where=self._where, hint=hint)
        if sequence.going is None and sequence.frozen is not None:
            assert self.freezing is not None  # there is a model whose table it is
            await over(self._keeper.run(self.freezing.thaw, sequence, sequence.frozen))
            sequence.frozen = None

    def drop(self, sequence: Sequence) -> None:
        """Leave a sequence: it is not known any more."""
        sequence.is_gone = True
        if self._known.get(sequence.key) is sequence:
            del self._known[sequence.key]

    async def end(self, sequence: Sequence) -> None:
        """Leave a sequence whose turn it is, in the store too."""
        sequence.leave()
        await self._keeper.forget(sequence)

    async def keep(self, sequence: Sequence) -> None:
        """Have the state of a sequence whose turn it is in the store. Raises NotStored."""
        assert self.freezing is not None  # there is a model whose table it is
        await self._keeper.keep(sequence, self.freezing)

    async def close(self) -> None:
        """Have all in the store, if there is one, and leave them."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for one in [*self._known.values()]:
            async with one.lock:
                if self._keeper.stores:
                    await self._lay_aside(one)
                self.drop(one)
        self._keeper.close()

    def _is_free(self, sequence: Sequence) -> bool:
        return not sequence.lock.locked() and not sequence.waiting

    def _sweep(self) -> None:
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep_on())

    async def _sweep_on(self) -> None:
        """As long as there are sequences, lay aside those that are idle, and leave those that are so for too long."""
        while self._known:
            await asyncio.sleep(min(MOMENT_S, self.idle_s) / 2)
            now = monotonic()
            for one in [*self._known.values()]:
                if one.used > now - min(MOMENT_S, self.idle_s):
                    break  # those behind it were used later
                if self._is_free(one):
                    async with one.lock:
                        await self._look_at(one, now)

    async def _look_at(self, one: Sequence, now: float) -> None:
        if one.used < now - self.idle_s:
            await self._lay_aside(one)
            if not one.waiting:
                self.drop(one)
            log("sequence.idle", model=self._name, sequence=one.name, stored=one.stored == one.turns)
        elif one.tried < now - _AGAIN_S:
            await self._lay_aside(one)
            if not one.is_there and not one.waiting:
                self.drop(one)  # it is in the store

    async def _lay_aside(self, one: Sequence) -> None:
        """Keep its state frozen: in the store, and, where there is none or it fails, in memory."""
        if not one.is_there or (one.stored == one.turns and self._keeper.stores):
            one.going = one.frozen = None
            return
        assert self.freezing is not None  # there is a model whose table it is
        try:
            if self._keeper.stores:
                await self._keeper.keep(one, self.freezing)
                one.going = one.frozen = None
            elif one.going is not None:
                frozen: bytes = await over(self._keeper.run(self.freezing.frozen, one))
                one.going, one.frozen, one.bytes = None, frozen, len(frozen)
        except NotStored as error:
            one.tried = monotonic()
            log("sequence.not_stored", model=self._name, sequence=one.name, error=str(error))
        except Exception as error:  # an operator that cannot be frozen: it stays as it is
            one.tried = inf
            log("sequence.not_frozen", model=self._name, sequence=one.name, error=str(error))

    @property
    def _where(self) -> str:
        return f"model {self._name!r}"
