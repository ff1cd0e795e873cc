"""States of sequences on their way to the store of a server and back, by threads of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from tract_serve.errors import Busy
from tract_serve.logs import log
from tract_serve.sequences.sequence import Sequence
from tract_serve.sequences.signing import Head
from tract_serve.sequences.store import NotStored, Store
from tract_serve.sequences.waiting import over


class Freezing(Protocol):
    """What is asked of a model. Called by threads."""

    def frozen(self, sequence: Sequence) -> bytes:
        """What a sequence goes on with, as bytes. Raises Unsupported."""
        ...

    def thaw(self, sequence: Sequence, frozen: bytes) -> None:
        """Have it go on from such bytes. Raises BadRequest."""
        ...


class Keeper:
    """The store, as far as it is about one model. Used by the thread of one event loop."""

    def __init__(self, store: Store | None, head: Head, *, looks_often: bool) -> None:
        """``head``: of the model. ``looks_often``: whether other servers may have gone on with a sequence meanwhile."""
        self._store, self._head, self._looks_often = store, head, looks_often
        self._threads = ThreadPoolExecutor(2, "tract-sequences")

    @property
    def stores(self) -> bool:
        """Whether there is a store."""
        return self._store is not None

    def run(self, function: Callable[..., Any], *given: Any) -> asyncio.Future[Any]:
        """Have something done by a thread."""
        return asyncio.get_running_loop().run_in_executor(self._threads, partial(function, *given))

    async def keep(self, sequence: Sequence, freezing: Freezing) -> None:
        """Have the state of a sequence in the store. Raises NotStored, Unsupported."""
        store = self._store
        if store is None:
            raise NotStored("the server has no store", hint="start it with --store and --store-key")

        def keep() -> tuple[object, int]:
            frozen = freezing.frozen(sequence)
            return store.put(self._head_of(sequence), frozen), len(frozen)

        sequence.tag, sequence.bytes = await over(self.run(keep))
        sequence.stored = sequence.turns

    async def fetch(self, sequence: Sequence) -> bool:
        """Have a sequence as it is in the store; whether there is one. Raises BadRequest, Busy."""
        if self._store is None:
            return False
        try:
            found = await over(self.run(self._store.get, self._head_of(sequence)))
        except NotStored as error:
            raise Busy(error.problem, where=f"model {self._head.model!r}", hint="ask again later") from None
        if found is None:
            return False
        sequence.leave()
        sequence.frozen, sequence.tag = found.state, found.tag
        sequence.turns = sequence.stored = found.turns
        sequence.bytes = len(found.state)
        return True

    async def is_outdated(self, sequence: Sequence) -> bool:
        """Whether another server went on with a sequence that was stored here."""
        if self._store is None or not self._looks_often or sequence.stored != sequence.turns:
            return False
        try:
            return await over(self.run(self._store.tag, self._head_of(sequence))) != sequence.tag
        except NotStored as error:
            log("sequence.not_read", model=self._head.model, sequence=sequence.name, error=str(error))
            return False

    async def forget(self, sequence: Sequence) -> None:
        """Have no state of a sequence in the store."""
        if self._store is None:
            return
        try:
            await over(self.run(self._store.remove, self._head_of(sequence)))
        except NotStored as error:
            log("sequence.not_removed", model=self._head.model, sequence=sequence.name, error=str(error))

    def close(self) -> None:
        """Nothing more will come."""
        self._threads.shutdown(wait=False)

    def _head_of(self, sequence: Sequence) -> Head:
        return replace(self._head, sequence=sequence.key, turns=sequence.turns)
