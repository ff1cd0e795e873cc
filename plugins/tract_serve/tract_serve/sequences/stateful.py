"""Models whose operators keep state, as those that take a signal in pulses: each sequence has a `State` of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from collections.abc import Sequence as Several
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.runtime.streams import Streams
from tract_serve.batching.lane import Lane
from tract_serve.config import ModelConfig
from tract_serve.errors import BadRequest
from tract_serve.models.recipe import ServingRecipe
from tract_serve.models.served import Wish
from tract_serve.models.trying import Tried
from tract_serve.sequences.asked import AskedTurn, asked_of
from tract_serve.sequences.chunks import Chunks
from tract_serve.sequences.sequence import Sequence
from tract_serve.sequences.sequenced import Sequenced
from tract_serve.sequences.turn import SequenceTurn
from tract_serve.sequences.waiting import over
from tract_serve.settings import Settings

if TYPE_CHECKING:
    from tract_core import Feeding, Runnable, State

Array = np.ndarray[Any, Any]

_SIDE_BY_SIDE: Final = 4
"""Turns of different sequences at the same time, at most, unless the configuration says how many (instance_group)."""


@dataclass(slots=True)
class Going:
    """``state``: what a sequence goes on with, turn by turn; or it is ``fed``. ``come``: positions of the signal.

    ``whole``: the inputs that do not stream, of one that is fed. ``runnable``: of what it is a state.
    """

    runnable: Runnable
    state: State | None
    fed: Feeding | None = None
    come: int = 0
    whole: Mapping[str, Array] | None = None


class Stateful(Sequenced):
    """A model whose operators keep something from turn to turn."""

    def __init__(
        self, name: str, version: str, recipe: ServingRecipe, config: ModelConfig, told: Tried, *, settings: Settings
    ) -> None:
        super().__init__(name, version, recipe, config, told, settings=settings)
        streams = Streams.of(self.runnable.typed)
        self.chunks = None if streams is None else Chunks(self.signature, streams)
        policy = config.waiting(None)
        if not config.told.instance_group:
            policy = replace(policy, instances=min(os.cpu_count() or 1, _SIDE_BY_SIDE))
        self._turns = Lane(f"{name}-sequences", _do, None, policy, self.statistics)

    @property
    def kept_by(self) -> str:
        """What sequences go on with."""
        return "signals in pulses" if self.chunks is not None else "what operators keep"

    async def close(self) -> None:
        """Return once all requests are answered that it has, and states are in the store."""
        await super().close()
        self._turns.close()

    def _in_order(self, given: Mapping[str, tuple[DatumType, Array]], wish: Wish) -> Several[Array]:
        asked = asked_of(wish.parameters)
        if not asked.streams:
            return self.signature.in_order(given)
        if self.chunks is None:
            hint = "the parameter 'pulse' of its configuration makes it take one: S=160"
            raise BadRequest("the model takes no stream", where=f"model {self.name!r}", hint=hint)
        return self.chunks.in_order(given)

    def _checked(self, inputs: Several[Array]) -> Several[Array]:
        """Itself: pulses have no rows that are joined."""
        return inputs if self.chunks is not None else super()._checked(inputs)

    def begin(self, inputs: Several[Array], asked: AskedTurn) -> Going:
        """A fresh state."""
        state = self.runnable.spawn_state()
        if not asked.streams:
            return Going(self.runnable, state)
        assert self.chunks is not None  # or the request was refused
        whole = self.chunks.whole(inputs)
        return Going(self.runnable, None, state.feed(whole), whole=whole)

    def frozen_going(self, going: Any) -> Any:
        """A snapshot."""
        if going.fed is not None:
            return going.fed.freeze(), going.come, going.whole
        return going.state.freeze(), going.come, None

    def thawed_going(self, frozen: Any) -> Going:
        """What goes on from it."""
        snapshot, come, whole = frozen
        if whole is not None:
            return Going(self.runnable, None, snapshot.unfreeze(), come, whole)
        return Going(self.runnable, snapshot.unfreeze(), None, come)

    async def run_turn(self, sequence: Sequence, inputs: Several[Array], asked: AskedTurn, wish: Wish) -> list[Array]:
        """One turn, or one chunk, of a sequence; at the end, all that is still to come of what is fed."""
        going: Going = sequence.going
        if (going.fed is not None) is not asked.streams:
            problem = f"{asked.name} was begun {'as a stream' if going.fed is not None else 'turn by turn'}"
            hint = "give each of its requests the parameter 'stream', or none"
            raise BadRequest(problem, where=f"model {self.name!r}", hint=hint)
        if going.runnable is not self.runnable:  # the model was loaded again
            frozen = await over(self._table.keeper.run(self.frozen, sequence))
            await over(self._table.keeper.run(self.thaw, sequence, frozen))
            going = sequence.going
        turn = SequenceTurn(inputs, lambda: self._do(going, inputs, asked))
        try:
            outputs = await self._turns.infer(turn, wish.priority, wish.timeout_s)
        except asyncio.CancelledError:
            if await turn.left():
                if turn.outputs is None or asked.ends:
                    sequence.leave()
                else:
                    self.count(sequence, inputs, turn.outputs, asked)
            raise
        self.count(sequence, inputs, outputs, asked)
        return outputs

    async def run_end(self, sequence: Sequence, asked: AskedTurn) -> list[Array]:
        """All that is still to come of what is fed."""
        if sequence.going.fed is None:
            return []
        ending = replace(asked, starts=False, streams=True, ends=True)
        return await self.run_turn(sequence, (), ending, Wish())

    async def run_alone(self, inputs: Several[Array], asked: AskedTurn, wish: Wish) -> list[Array]:
        """A fresh state: a turn is a request as any other, a chunk is a whole signal."""
        if not asked.streams:
            return await self._lane.infer(inputs, wish.priority, wish.timeout_s)
        turn = SequenceTurn(inputs, lambda: self._do(self.begin(inputs, asked), inputs, replace(asked, ends=True)))
        return await self._turns.infer(turn, wish.priority, wish.timeout_s)

    def _do(self, going: Going, inputs: Several[Array], asked: AskedTurn) -> list[Array]:
        """The outputs. Called by a thread, or where a turn is quick by that of the event loop."""
        if going.fed is not None and self.chunks is not None and going.whole is not None:
            return self.chunks.fed(going.fed, going.whole, inputs, ends=asked.ends)
        assert going.state is not None  # or it is fed
        come = going.come + (0 if self.chunks is None else self.chunks.positions(inputs))
        if asked.ends and self.chunks is not None:
            with suppress(Unsupported):  # a runtime that is not told gives what it gives anyway
                going.state.end_of_stream(come)
        outputs = [np.asarray(one) for one in going.state.run(inputs)]
        going.come = come
        return outputs


def _do(turn: Any) -> list[Array]:
    return turn()
