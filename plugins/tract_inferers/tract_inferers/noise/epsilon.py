"""A layer that gives a policy the noise that it wants for an input."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, Self

import numpy as np

from tract_core.errors import InputError
from tract_inferers.compatible import interface_of
from tract_inferers.inferer import Inferer
from tract_inferers.layer import TableLayer, place_of
from tract_inferers.noise.generators import HighQualityNoiseGenerator, NoiseGenerator
from tract_inferers.scratch import ScratchPadView
from tract_inferers.slots import Slot, as_slots
from tract_inferers.snapshot import AgentSnapshot
from tract_inferers.stateful import BaseWrapper, StatefulInferer
from tract_inferers.table import AgentTable
from tract_inferers.wrapper import InfererWrapper

ENDED: Final = 65_536
"""Agents that have ended whose steps are remembered, the last ones."""

Array = np.ndarray[Any, Any]


class EpsilonInjectorWrapper(TableLayer):
    """Noise for an input of a policy, as a layer. The input is hidden; what is in it is overwritten.

    It counts the steps of each agent that have succeeded, also of those that were never begun. The number goes on when
    an agent that has ended begins again, as each of its episodes would have the same noise otherwise. Of the agents
    that have ended, the last 65,536 are remembered; one that ended before those begins at step 0.
    """

    def __init__(
        self, inner: InfererWrapper, inferer: Inferer, key: str, generator: NoiseGenerator | None = None
    ) -> None:
        """Above ``inner``, around ``inferer``, for the input ``key``.

        ``generator``: a `HighQualityNoiseGenerator` with a fresh seed where there is none. Raises InputError where
        there is no such input in the layer below, and where the generator has no noise of its type.
        """
        raw, shown = interface_of(inferer)[0], as_slots(inner.input_shapes(inferer))
        self.key = key
        self.generator = HighQualityNoiseGenerator() if generator is None else generator
        self._place = place_of(key, raw, shown, f'model has no input key "{key}"')
        if not hasattr(self.generator, "generate"):
            raise InputError(
                f"wanted a NoiseGenerator, got {type(generator).__name__}", where=f"noise for input {key!r}"
            )
        nobody = np.zeros(0, np.uint64)
        try:
            self.generator.generate(raw[self._place].empty(0), ids=nobody, steps=nobody, brain=0)
        except InputError as error:
            raise error.at(f"noise for input {key!r}") from None
        steps = Slot(f"noise:{key}", (), np.dtype(np.uint64))
        super().__init__(inner, AgentTable([steps], [np.zeros((), np.uint64)], adopts=True), inputs=[key])
        self._ended: OrderedDict[int, int] = OrderedDict()

    @classmethod
    def wrap(cls, inner: InfererWrapper, inferer: Inferer, key: str) -> Self:
        """With a `HighQualityNoiseGenerator` of a fresh seed. Raises InputError where there is no such input."""
        return cls(inner, inferer, key)

    @classmethod
    def with_generator(cls, inner: InfererWrapper, inferer: Inferer, generator: NoiseGenerator, key: str) -> Self:
        """With this generator. Raises InputError where there is no such input."""
        return cls(inner, inferer, key, generator)

    def invoke(self, inferer: Inferer, pad: ScratchPadView) -> None:
        """Fill the input, call the layer below, and count the step."""
        steps = np.empty(len(pad), np.uint64)
        with self._lock:
            found = self._table.find(pad.ids)
            self._table.take(found, [steps])
        self.generator.generate(pad.inputs[self._place], ids=found.numbers, steps=steps, brain=pad.brain)
        self.inner.invoke(inferer, pad)
        with self._lock:
            self._table.put(found, [steps + np.uint64(1)])

    def begin_agent(self, inferer: Inferer, id: int) -> None:  # noqa: A002 - the name in the interface that this follows
        """The layer below is told; steps go on."""
        self.inner.begin_agent(inferer, id)
        with self._lock:
            self._ended.pop(id, None)
            if id not in self._table:
                self._table.begin([id])

    def end_agent(self, inferer: Inferer, id: int) -> None:  # noqa: A002 - as in `begin_agent`
        """The layer below is told; steps are remembered for a while."""
        self.inner.end_agent(inferer, id)
        with self._lock:
            if id in self._table:
                self._ended.pop(id, None)
                self._ended[id] = self._steps_of(id)
                if len(self._ended) > ENDED:
                    self._forget(*self._ended.popitem(last=False))

    def restore(self, inferer: Inferer, snapshot: AgentSnapshot) -> None:
        """As the layers of all kinds do; who comes back is not among those that have ended."""
        super().restore(inferer, snapshot)
        with self._lock:
            for agent in snapshot.agents:
                self._ended.pop(agent, None)

    def _forget(self, agent: int, steps: int) -> None:
        """Forget an agent, unless it has gone on without being begun."""
        if self._steps_of(agent) == steps:
            self._table.end([agent])

    def _steps_of(self, agent: int) -> int:
        steps = np.empty(1, np.uint64)
        self._table.take(self._table.find([agent]), [steps])
        return int(steps[0])


class EpsilonInjector(StatefulInferer):
    """A policy with noise for one of its inputs, see `EpsilonInjectorWrapper`."""

    stack: EpsilonInjectorWrapper

    def __init__(self, inferer: Inferer, key: str, generator: NoiseGenerator | None = None) -> None:
        super().__init__(EpsilonInjectorWrapper(BaseWrapper(), inferer, key, generator), inferer)

    @classmethod
    def wrap(cls, inferer: Inferer, key: str) -> Self:
        """With a `HighQualityNoiseGenerator` of a fresh seed. Raises InputError where there is no such input."""
        return cls(inferer, key)

    @classmethod
    def with_generator(cls, inferer: Inferer, generator: NoiseGenerator, key: str) -> Self:
        """With this generator. Raises InputError where there is no such input."""
        return cls(inferer, key, generator)
