"""A deconvolution as convolutions: one for every phase, the output positions that are equal modulo the stride.

Output position ``o`` gets what input position ``i`` and position ``t`` in the kernel write to ``i * stride + t *
dilation - before``. So for one phase only some positions of the kernel count, evenly spaced, and while ``o`` moves on
by the stride, ``i`` moves on by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.dims import Dim, ceil_div, dim_max
from tract_core.frozen import frozen
from tract_core.ops.pool_spec import AxisPlan

MOST_PHASES: Final = 1024
"""Each is a call of a kernel."""

MOST_TAPS: Final = 1 << 16
"""Positions along an axis of a kernel: each is looked at here."""


@frozen
class Phase:
    """Along one axis, the output positions ``first``, ``first + stride``, ..., of which there are ``count``.

    ``taps``: the positions in the kernel that write there, in the order in which a window reads the input; it reads
    every ``dilation`` elements, the first window from ``before`` elements before the input on (behind its begin, where
    that is negative), the last one up to ``overhang`` elements behind its end (not so far, where that is negative).
    """

    first: int
    stride: int
    count: Dim
    taps: tuple[int, ...]
    dilation: int
    before: int
    overhang: Dim


def phases(plan: AxisPlan) -> list[Phase] | None:
    """All phases of an axis; ``None`` where they are too many, and where what is cut off before it is not known now."""
    stride, cut = plan.window.stride, plan.before
    if not isinstance(cut, int) or stride > MOST_PHASES or plan.window.kernel > MOST_TAPS:
        return None
    taps: list[list[int]] = [[] for _ in range(stride)]
    for tap in reversed(range(plan.window.kernel)):
        taps[(tap * plan.window.dilation - cut) % stride].append(tap)
    return [_phase(plan, first, cut, own) for first, own in enumerate(taps)]


def _phase(plan: AxisPlan, first: int, cut: int, taps: Sequence[int]) -> Phase:
    stride, dilation = plan.window.stride, plan.window.dilation
    reads = {tap: (first + cut - tap * dilation) // stride for tap in taps}
    places = list(reads.values()) or [0]
    count = ceil_div(plan.output - first, stride)
    apart = places[1] - places[0] if len(places) > 1 else 1
    return Phase(first, stride, count, tuple(reads), apart, -places[0], count - 1 + places[-1] - (plan.input - 1))


def ends(found: Sequence[Phase]) -> tuple[Dim, Dim]:
    """How far the windows of all phases reach beyond the input, before and behind it."""
    behind: Dim = 0
    for one in found:
        behind = dim_max(behind, one.overhang)
    return max(0, *(one.before for one in found)), behind
