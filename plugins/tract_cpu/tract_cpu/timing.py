"""How long each part of a model takes, those of bodies that are native too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tract_core.frozen import frozen
from tract_core.runtime.stopwatch import timed_run
from tract_cpu.lower.bodies import WAYS

if TYPE_CHECKING:
    from tract_core.model.session import BodyPlan
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array
    from tract_core.runtime.parts import BodyPath
    from tract_core.runtime.protocol import Timing
    from tract_cpu.plan import CpuPlan


def timings(plan: CpuPlan, inputs: Sequence[Array]) -> list[Timing]:
    """One turn, step by step, on a fresh state, and what each part took in it, those of bodies in every iteration."""
    inlined = {(one.part.body, node) for one in plan.explain().placements if one.how in WAYS for node in one.part.nodes}
    return _with_bodies(timed_run(_Watched(plan), inputs), inlined)


def _with_bodies(found: Sequence[Timing], inlined: set[tuple[BodyPath, int]]) -> list[Timing]:
    """Let what an operator took include what its native bodies took, which come before it."""
    inside: dict[tuple[BodyPath, int], list[Timing]] = {}
    result: list[Timing] = []
    for timing in found:
        path = timing.part.body
        own = inside.pop((path, timing.part.nodes[0]), [])
        whole = timing
        if own:
            whole = replace(timing, start=own[0].start, seconds=timing.seconds + sum(one.seconds for one in own))
        result.append(whole)
        if path and (path[:-1], path[-1][0]) in inlined:
            inside.setdefault((path[:-1], path[-1][0]), []).append(whole)
    return result


@frozen
class _Watched:
    """A plan whose states tell the observer of native bodies, and do nothing else for it."""

    plan: CpuPlan

    @property
    def model(self) -> TypedModel:
        return self.plan.model

    def bodies(self, body: TypedModel) -> _Watched:
        return _Watched(self.plan.bodies(body))

    def spawn_with(self, plan_of: Callable[[TypedModel], BodyPlan]) -> Any:
        state = self.plan.spawn_with(plan_of)
        return _WatchedState(state, partial(state.run, only_times=True))


@frozen
class _WatchedState:
    state: Any
    run: Callable[..., list[Array]]

    def freeze(self) -> Any:
        return self.state.freeze()

    def thaw(self, frozen: Any) -> None:
        self.state.thaw(frozen)
