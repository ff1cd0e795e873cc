"""One version of a model that is ready: what it says of itself, and how a request is run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import ModelError, TractError
from tract_core.frozen import frozen
from tract_serve.batching.joining import Joining, RowsJoined
from tract_serve.batching.lane import Lane
from tract_serve.batching.ragged import RaggedJoined, why_not_joined
from tract_serve.batching.statistics import Statistics
from tract_serve.config import ModelConfig
from tract_serve.errors import BadRequest
from tract_serve.models.recipe import ServingRecipe, prepared
from tract_serve.models.reshaped import Reshapes
from tract_serve.models.trying import Tried
from tract_serve.tensors.ports import Signature

if TYPE_CHECKING:
    from tract_core import Runnable
    from tract_serve.models.protocol import ServedModel

Array = np.ndarray[Any, Any]


class RequestTrace(Protocol):
    """What follows a request."""

    def end(self, served: Served, inputs: Sequence[Array], problem: BaseException | None) -> None:
        """The request is over; ``problem``: why it was not answered."""
        ...


@frozen
class Wish:
    """What a request asks for besides its tensors. ``priority``: 0 for the usual one.

    ``timeout_s``: how long it may wait; ``None`` for what the model says. ``parameters``: those of the request, whose
    meaning depends on the model, as ``sequence_id``. ``trace``: where the request is traced. ``told``: what the model
    says besides its outputs, as parameters of the answer.
    """

    priority: int = 0
    timeout_s: float | None = None
    parameters: Mapping[str, Any] | None = None
    trace: RequestTrace | None = None
    told: dict[str, Any] = field(default_factory=dict[str, Any], compare=False)


class Served:
    """A model that answers requests. Used by the thread of one event loop."""

    def __init__(self, name: str, version: str, recipe: ServingRecipe, config: ModelConfig, told: Tried) -> None:
        """``recipe``: of what is run. ``config``: what its folder says. ``told``: what was found out about it."""
        self.name, self.version, self.config, self.recipe, self.found = name, version, config, recipe, told
        self.runnable: Runnable = prepared(recipe)
        self.whole = self.signature = Signature.of(self.runnable)
        config.check(self.signature, where=f"model {name!r}")
        self.labels = config.labels()
        self._reshapes = Reshapes.of(config, self.signature)
        if self._reshapes is not None:
            self.signature = self._reshapes.seen
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
        """How requests are joined, if they are. Raises ModelError where they cannot be as the configuration says."""
        rows, ragged = self.found.rows, self.config.ragged
        if rows is None and (ragged or self.config.told.HasField("dynamic_batching")):
            hint = "leave dynamic_batching and allow_ragged_batch out"
            raise ModelError(
                f"requests cannot be joined: {self.found.no_rows}", where=f"model {self.name!r}", hint=hint
            )
        if rows is None or not self.config.joins:
            return None
        if not ragged:
            return RowsJoined(rows)
        joining = RaggedJoined(rows, self.whole, ragged)
        problem = why_not_joined(joining, self.whole, self._turn)
        if problem:
            raise ModelError(f"requests of different lengths cannot be joined: {problem}", where=f"model {self.name!r}")
        return joining

    def _turn(self, inputs: Sequence[Array]) -> list[Array]:
        return [np.asarray(one) for one in self.runnable.run(inputs)]

    def warm_up(self) -> None:
        """Run a few times on zeros, with 1 for sizes that may be any; what that refuses is no matter."""
        given = [np.zeros([1 if n is None else n for n in port.sizes], port.kind.numpy) for port in self.whole.inputs]
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
        inputs: Sequence[Array] = ()
        problem: BaseException | None = None
        try:
            with self.held():
                inputs = self._checked(self._in_order(given, wish))
                outputs = await self._answer(inputs, wish)
                if self._reshapes is not None:
                    outputs = self._reshapes.out(outputs)
        except BaseException as error:
            problem = error
            self.statistics.fail.add(perf_counter() - begun)
            raise
        finally:
            if wish.trace is not None:
                wish.trace.end(self, inputs, problem)
        self.statistics.answered(perf_counter() - begun)
        return outputs

    @contextmanager
    def held(self) -> Generator[None]:
        """Inside, it is not closed, whatever takes its place meanwhile."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if self._idle is not None and not self._open and not self._idle.done():
                self._idle.set_result(None)

    def is_quick(self, given: Mapping[str, tuple[DatumType, Array]]) -> bool:
        """Whether a request is answered without waiting for anything."""
        return self._lane.is_quick(tuple([array.shape for _, array in given.values()]))

    def _in_order(self, given: Mapping[str, tuple[DatumType, Array]], wish: Wish) -> Sequence[Array]:
        """The inputs, in order. Raises BadRequest where they do not fit."""
        inputs = self.signature.in_order(given)
        return inputs if self._reshapes is None else self._reshapes.into(inputs)

    def _checked(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Itself. Raises BadRequest where there are more rows than the configuration allows (``max_batch_size``)."""
        most, rows = self.config.told.max_batch_size, self.found.rows
        if most > 0 and rows is not None and (found := inputs[0].shape[rows.inputs[0]]) > most:
            raise BadRequest(f"the request has {found} rows, at most {most} are taken", where=f"model {self.name!r}")
        return inputs

    async def _answer(self, inputs: Sequence[Array], wish: Wish) -> list[Array]:
        return await self._lane.infer(inputs, wish.priority, wish.timeout_s)

    def apart(self, work: Callable[[], None]) -> None:
        """Have something done behind the runs that are under way."""
        self._lane.apart(work)

    def complete(self, config: Any) -> None:
        """Have a ``ModelConfig`` say what is not said in the one of the model, and is so."""

    def follow(self, before: ServedModel) -> None:
        """It takes the place of another one, which may still have requests, and what belongs to requests to come."""

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
