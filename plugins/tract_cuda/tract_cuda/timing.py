"""How long each group of a model takes: on the device by its own clock, on the host by ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tract_core.plugins.keys import Array
from tract_core.runtime.protocol import Timing
from tract_core.runtime.stopwatch import timed_run
from tract_cuda.segments import Segment

if TYPE_CHECKING:
    from tract_cuda.plan import CudaPlan

ROUNDS = 3
"""How often launches are timed: the first ones may wait for their code."""


def timings(plan: CudaPlan, inputs: Sequence[Array]) -> list[Timing]:
    """One turn, and what each group took in it; on the device without copies from the host and back."""
    took = _on_device(plan, inputs)
    found, now = list[Timing](), 0.0
    for one in timed_run(plan.shown(), inputs):
        inside = bool(one.part.body)
        seconds = one.seconds if inside else took.get(one.part.nodes[0], one.seconds)
        found.append(one if inside else replace(one, start=now, seconds=seconds))
        now += 0.0 if inside else seconds
    return found


def _on_device(plan: CudaPlan, inputs: Sequence[Array]) -> dict[int, float]:
    """Seconds of the groups that the device computes, by their first nodes: 0 for those that need no kernel."""
    state = plan.spawn()
    state.run(inputs)
    hosted = plan.hosted()
    took = {group.nodes[0]: 0.0 for group in plan.groups if group.nodes[0] not in hosted}
    for piece in plan.pieces:
        if isinstance(piece, Segment):
            for nodes, seconds in state.seconds_of(piece, ROUNDS):
                if nodes:
                    took[nodes[0]] = took.get(nodes[0], 0.0) + seconds
    return took
