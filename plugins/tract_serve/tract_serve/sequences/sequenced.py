"""A model whose requests may belong to sequences: what is the same however it keeps its state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence as Several
from time import perf_counter
from typing import Any, Final

import numpy as np

from tract_core.errors import InputError, Unsupported
from tract_serve.config import ModelConfig
from tract_serve.errors import BadRequest, Refusal, RequestTooLarge
from tract_serve.logs import log
from tract_serve.models.protocol import ServedModel
from tract_serve.models.recipe import ServingRecipe
from tract_serve.models.served import Served, Wish
from tract_serve.models.trying import Tried
from tract_serve.sequences.asked import AskedTurn, asked_of
from tract_serve.sequences.keeper import Keeper
from tract_serve.sequences.pickles import dumped, loaded
from tract_serve.sequences.places import store_of
from tract_serve.sequences.sequence import Sequence
from tract_serve.sequences.signing import Head
from tract_serve.sequences.store import NotStored
from tract_serve.sequences.table import SequenceTable
from tract_serve.sequences.waiting import over
from tract_serve.settings import Settings

Array = np.ndarray[Any, Any]

_LOOK_FROM: Final = 1 << 20
"""Bytes of input after which it is first looked at how large a state is; then whenever as many have come again."""


class Sequenced(Served):
    """A model with state. A request without ``sequence_id`` runs on a fresh one."""

    def __init__(
        self, name: str, version: str, recipe: ServingRecipe, config: ModelConfig, told: Tried, *, settings: Settings
    ) -> None:
        super().__init__(name, version, recipe, config, told)
        limits, policy = settings.limits, config.waiting(told.rows)
        idle = config.told.sequence_batching.max_sequence_idle_microseconds * 1e-6 or limits.sequence_idle_s
        head = Head(name, version, told.digest, "", 0)
        keeper = Keeper(store_of(settings), head, looks_often=bool(settings.store_every))
        self._settings = settings
        self._table = SequenceTable(
            name,
            keeper,
            most=limits.sequences,
            waiting=policy.most_waiting,
            idle_s=idle,
            most_bytes=limits.bodies_bytes,
        )
        self._table.freezing = self
        self._owns_table = True

    @property
    def sequences(self) -> SequenceTable:
        """Those that are kept."""
        return self._table

    def follow(self, before: ServedModel) -> None:
        """Go on with the sequences of the one before, if it is the same model, loaded again."""
        if isinstance(before, Sequenced) and type(before) is type(self) and before.found.digest == self.found.digest:
            idle_s = self._table.idle_s
            self._table, before._owns_table = before._table, False
            self._table.freezing, self._table.idle_s = self, idle_s

    async def close(self) -> None:
        """Return once all requests are answered that it has, and states are in the store."""
        await super().close()
        if self._owns_table:
            await self._table.close()

    def complete(self, config: Any) -> None:
        """Have a configuration say that there are sequences, unless it says that requests are joined."""
        if config.WhichOneof("scheduling_choice") != "dynamic_batching":
            config.sequence_batching.max_sequence_idle_microseconds = int(self._table.idle_s * 1e6)

    def told(self) -> dict[str, Any]:
        """What the log says of it."""
        return {**super().told(), "sequences": self.kept_by}

    @property
    @abstractmethod
    def kept_by(self) -> str:
        """How the state is kept, in words."""

    @abstractmethod
    def begin(self, inputs: Several[Array], asked: AskedTurn) -> Any:
        """What a sequence begins with whose first request brings these inputs. Raises BadRequest."""

    @abstractmethod
    def frozen_going(self, going: Any) -> Any:
        """A snapshot of what a sequence goes on with, which can be pickled. Called by threads."""

    @abstractmethod
    def thawed_going(self, frozen: Any) -> Any:
        """What goes on from a snapshot. Called by threads."""

    @abstractmethod
    async def run_turn(self, sequence: Sequence, inputs: Several[Array], asked: AskedTurn, wish: Wish) -> list[Array]:
        """One turn of a sequence, which it counts (`count`)."""

    @abstractmethod
    async def run_alone(self, inputs: Several[Array], asked: AskedTurn, wish: Wish) -> list[Array]:
        """A request that belongs to no sequence, on a fresh state."""

    async def _answer(self, inputs: Several[Array], wish: Wish) -> list[Array]:
        asked = asked_of(wish.parameters)
        if asked.id is None:
            return await self.run_alone(inputs, asked, wish)
        begun = perf_counter()
        async with self._table.turn(asked, wish.timeout_s) as sequence:
            left = None if wish.timeout_s is None else max(wish.timeout_s - (perf_counter() - begun), 0.0)
            again = self._again(sequence, asked, wish)
            if again is not None:
                return again
            outputs = await self._in_turn(sequence, inputs, asked, Wish(wish.priority, left))
            await self._behind(sequence, asked, wish)
            return outputs

    async def finish(self, asked: AskedTurn) -> list[Array]:
        """End a sequence that nothing more comes for: all that is still to come; nothing of one that is not fed.

        Raises NotFound for a sequence that was not started.
        """
        async with self._table.turn(asked, None) as sequence:
            try:
                return await self.run_end(sequence, asked)
            finally:
                await self._table.end(sequence)

    async def leave(self, asked: AskedTurn) -> None:
        """Leave a sequence, whatever it is at, once nobody waits for it."""
        sequence = self._table.find(asked.key)
        if sequence is not None:
            async with sequence.lock:
                await self._table.end(sequence)
                self._table.drop(sequence)

    async def run_end(self, sequence: Sequence, asked: AskedTurn) -> list[Array]:
        """What is still to come of a sequence that has ended."""
        return []

    def _again(self, sequence: Sequence, asked: AskedTurn, wish: Wish) -> list[Array] | None:
        """The outputs of a turn that was done already, for a client that has not got them. Raises BadRequest."""
        if asked.turn is None or asked.turn == sequence.turns:
            return None
        if asked.turn == sequence.turns - 1 and sequence.last is not None and not asked.ends:
            wish.told["sequence_turn"] = asked.turn
            return sequence.last
        problem = f"sequence_turn is {asked.turn}, and {asked.name} is at turn {sequence.turns}"
        raise BadRequest(problem, where=f"model {self.name!r}", hint="send what comes from that turn on")

    async def _in_turn(self, sequence: Sequence, inputs: Several[Array], asked: AskedTurn, wish: Wish) -> list[Array]:
        """The turn; one that fails in the middle ends the sequence, and so does one that is the first."""
        try:
            if sequence.going is None:
                sequence.begin(self.begin(inputs, asked))
            return await self.run_turn(sequence, inputs, asked, wish)
        except Refusal:
            raise  # before anything was done
        except InputError:
            if asked.ends:  # the end may be told already
                sequence.leave()
            raise
        except Exception:
            sequence.leave()
            raise
        finally:
            if not sequence.turns:
                sequence.leave()

    def count(self, sequence: Sequence, inputs: Several[Array], outputs: list[Array], asked: AskedTurn) -> None:
        """A turn is done."""
        sequence.turns += 1
        sequence.last = outputs if asked.turn is not None else None
        sequence.fed += sum(array.nbytes for array in inputs)

    async def _behind(self, sequence: Sequence, asked: AskedTurn, wish: Wish) -> None:
        """What is to be done once a turn is done: end the sequence, store it, look at its size."""
        wish.told["sequence_turn"] = sequence.turns - 1
        if asked.ends:
            await self._table.end(sequence)
            return
        every = self._settings.store_every
        if asked.keeps or (
            every and self._settings.store is not None and sequence.turns - max(sequence.stored, 0) >= every
        ):
            try:
                await self._table.keep(sequence)
                wish.told["stored"] = True
            except (NotStored, Unsupported) as error:
                wish.told["stored"], wish.told["not_stored"] = False, str(error)
                log("sequence.not_stored", model=self.name, sequence=sequence.name, error=str(error))
        elif sequence.fed >= max(_LOOK_FROM, 2 * sequence.looked_at):
            sequence.looked_at = sequence.fed
            sequence.bytes = len(await over(self._table.keeper.run(self.frozen, sequence)))
        size, most = sequence.bytes, self._settings.limits.sequence_bytes
        if size > most:
            await self._table.end(sequence)
            problem = f"the state of {asked.name} has {size} bytes, at most {most} are kept: it has ended"
            raise RequestTooLarge(problem, where=f"model {self.name!r}", hint="--serve-limit sequence_bytes=...")

    def frozen(self, sequence: Sequence) -> bytes:
        """What a sequence goes on with. Called by threads. Raises Unsupported."""
        if sequence.going is None and sequence.frozen is not None:
            return sequence.frozen
        return dumped((self.frozen_going(sequence.going), sequence.last, sequence.fed))

    def thaw(self, sequence: Sequence, frozen: bytes) -> None:
        """Have it go on from there. Called by threads. Raises BadRequest."""
        going, sequence.last, sequence.fed = loaded(frozen, self.runnable)
        sequence.going = self.thawed_going(going)
