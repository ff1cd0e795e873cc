"""Time the nodes of one turn, and of the bodies that they run, on any runtime that goes node by node, or in groups.

Whoever runs the nodes calls an observer after each part; the time since the call before is what the part took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from tract_core.model.bodies import bodies_of
from tract_core.runtime.protocol import Timing

if TYPE_CHECKING:
    from tract_core.model.graph import OutletId
    from tract_core.model.session import BodyPlan
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array
    from tract_core.runtime.parts import Part


class WatchedPlan(Protocol):
    """The plan of a model, or of a body, whose states call an observer: ``state.run(inputs, observe=...)``."""

    @property
    def model(self) -> TypedModel:
        """What it runs."""
        ...

    @property
    def bodies(self) -> Callable[[TypedModel], Any]:
        """The plans of the bodies of its operators, which are such plans too."""
        ...

    def spawn_with(self, plan_of: Callable[[TypedModel], BodyPlan]) -> Any:
        """A fresh state, whose operators ask ``plan_of`` who runs their bodies."""
        ...


def timed_run(plan: WatchedPlan, inputs: Sequence[Array]) -> list[Timing]:
    """One turn on a fresh state, and what each part took in it, those of bodies too, in every iteration."""
    stopwatch = _Stopwatch()
    state = plan.spawn_with(stopwatch.plan_of(plan))
    return stopwatch.time(plan.model, partial(state.run, inputs))[1]


class _Stopwatch:
    def __init__(self) -> None:
        self._origin = perf_counter()
        self._inside: list[tuple[TypedModel, list[Timing]]] = []
        """The bodies that have run inside the part that is running, and what their parts took."""

    def time(self, model: TypedModel, run: Callable[..., list[Array]]) -> tuple[list[Array], list[Timing]]:
        """The outputs of one turn, and what each part of ``model`` took. ``run`` is called with ``observe``."""
        timings: list[Timing] = []
        around, self._inside = self._inside, []
        begun = perf_counter()

        def note(part: Part, _: Mapping[OutletId, Array]) -> None:
            nonlocal begun
            ended = perf_counter()
            timings.append(Timing(part, begun - self._origin, ended - begun))
            timings.extend(_seen_from(model, part, self._inside))
            self._inside = []
            begun = perf_counter()

        outputs = run(observe=note)
        self._inside = around
        return outputs, timings

    def plan_of(self, plan: WatchedPlan) -> Callable[[TypedModel], BodyPlan]:
        """Who runs the bodies of a plan's operators: what the plan has for them, while this looks on."""
        return lambda body: _WatchedBody(plan.bodies(body), self)

    def look_on(self, body: TypedModel, run: Callable[..., list[Array]]) -> list[Array]:
        """The outputs of one run of a body."""
        outputs, timings = self.time(body, run)
        self._inside.append((body, timings))
        return outputs


def _seen_from(model: TypedModel, part: Part, inside: Sequence[tuple[TypedModel, list[Timing]]]) -> Iterator[Timing]:
    """What the parts of bodies took, as seen from the model whose ``part`` ran the bodies."""
    if not inside:
        return
    bodies = [(node.id, number, body) for node in part.within(model) for number, body in enumerate(bodies_of(node.op))]
    where = {id(body): (node, number) for node, number, body in bodies}
    for body, timings in inside:
        for timing in timings:
            yield replace(timing, part=replace(timing.part, body=(where[id(body)], *timing.part.body)))


class _WatchedBody:
    def __init__(self, plan: WatchedPlan, stopwatch: _Stopwatch) -> None:
        self._plan = plan
        self._stopwatch = stopwatch

    def spawn(self) -> _WatchedState:
        return _WatchedState(self._plan, self._stopwatch)


class _WatchedState:
    """The state of a body that is looked on."""

    def __init__(self, plan: WatchedPlan, stopwatch: _Stopwatch) -> None:
        self._model = plan.model
        self._stopwatch = stopwatch
        self._state = plan.spawn_with(stopwatch.plan_of(plan))

    def run(self, inputs: Sequence[Array], *, symbols: Mapping[str, int]) -> list[Array]:
        return self._stopwatch.look_on(self._model, partial(self._state.run, inputs, symbols=symbols))

    def freeze(self) -> Any:
        return self._state.freeze()

    def thaw(self, frozen: Any) -> None:
        self._state.thaw(frozen)
