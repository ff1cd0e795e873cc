"""One version of a model that is ready: what it says of itself, and how a request is run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import TractError
from tract_core.frozen import frozen
from tract_serve.batching.joining import Joining, RowsJoined
from tract_serve.batching.lane import Lane
from tract_serve.models.ports import Signature
from tract_serve.models.recipe import Recipe
from tract_serve.models.statistics import Statistics
from tract_serve.models.trying import Told
from tract_serve.repository.config import ModelConfig

if TYPE_CHECKING:
    from tract_core import Runnable

Array = np.ndarray[Any, Any]


@frozen
class Wish:
    """What a request asks for besides its tensors. ``priority``: 0 for the usual one.

    ``timeout_s``: how long it may wait; ``None`` for what the model says. ``parameters``: those of the request, whose
    meaning depends on the model, as ``sequence_id``.
    """

    priority: int = 0
    timeout_s: float | None = None
    parameters: Mapping[str, Any] | None = None


class Served:
    """A model that answers requests. Used by the thread of one event loop."""

    def __init__(self, name: str, version: str, recipe: Recipe, config: ModelConfig, told: Told) -> None:
        """``runnable``: what is run. ``config``: what its folder says. ``told``: what was found out about it."""
        from tract_serve.models.recipe import prepared

        self.name, self.version, self.config, self.recipe, self.found = name, version, config, recipe, told
        self.runnable: Runnable = prepared(recipe)
        self.signature = Signature.of(self.runnable)
        config.check(self.signature, where=f"model {name!r}")
        self.statistics = Statistics()
        self._open = 0
        self._idle: asyncio.Future[None] | None = None
        self._lane = Lane(name, self._turn, self._joining(), config.waiting(told.rows), self.statistics)

    @property
    def lane(self) -> Lane:
        """Where its requests wait."""
        return self._lane

    @property
    def runtime(self) -> str:
        """The name of the runtime that computes it."""
        return self.runnable.runtime.name()

    def _joining(self) -> Joining | None:
        return RowsJoined(self.found.rows) if self.found.rows is not None and self.config.joins else None

    def _turn(self, inputs: Sequence[Array]) -> list[Array]:
        return [np.asarray(one) for one in self.runnable.run(inputs)]

    def warm_up(self) -> None:
        """Run a few times on zeros, with 1 for sizes that may be any; what that refuses is no matter."""
        given = [
            np.zeros([1 if n is None else n for n in port.sizes], port.kind.numpy) for port in self.signature.inputs
        ]
        for array in given:
            if array.dtype.kind == "O":
                array.fill("")
        for _ in range(3):
            try:
                self._turn(given)
            except TractError:
                return

    async def infer(self, given: Mapping[str, tuple[DatumType, Array]], wish: Wish) -> list[Array]:
        """The outputs, in order, for arrays by name. Raises Refusal, and what the run raises."""
        begun = perf_counter()
        self._open += 1
        try:
            outputs = await self._answer(self.signature.in_order(given), wish)
        except BaseException:
            self.statistics.fail.add(perf_counter() - begun)
            raise
        finally:
            self._open -= 1
            if self._idle is not None and not self._open and not self._idle.done():
                self._idle.set_result(None)
        self.statistics.success.add(perf_counter() - begun)
        return outputs

    async def _answer(self, inputs: Sequence[Array], wish: Wish) -> list[Array]:
        return await self._lane.infer(inputs, wish.priority, wish.timeout_s)

    async def close(self) -> None:
        """Return once all requests are answered that it has."""
        if self._open:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        self._lane.close()

    def told(self) -> Mapping[str, Any]:
        """What the log says of it."""
        rows = self.found.rows
        joined = (
            f"along {rows.symbol}" if rows is not None and self.config.joins else self.found.no_rows or "not asked for"
        )
        return {"runtime": self.runtime, "joined": joined}
