"""How far the windows of convolutions reach beyond their data: the zeros that have to lie around it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from tract_core.dims import Dim, dim_max, is_symbolic
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.conv import Conv
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool_spec import AxisPlan
from tract_cpu.group.known import CpuKnown
from tract_cpu.group.phases import ends, phases
from tract_cpu.group.winograd import ends_of_tiles, tile_of
from tract_cpu.program.form import Border, Form

_FAR: Final = 1 << 16
"""Zeros around the data, for each channel, that cost nobody anything."""


def ends_of(known: CpuKnown, number: int) -> list[tuple[Dim, Dim]] | None:
    """How far the windows of a convolution, or those of the phases of a deconvolution, reach beyond its input.

    For each spatial axis. ``None`` where it is known by now that they do not fit: a run that comes there is refused.
    Also where they reach so far that there would be much more memory for zeros than for data.
    """
    node = known.model.nodes[number]
    op, shape = node.op, known.model.outlet_fact(node.inputs[0]).shape
    found: list[tuple[Dim, Dim]]
    try:
        if isinstance(op, Deconv):
            plans = op.pool.transposed_plan(op, shape, op.adjustments)
            found = [ends(one) if one is not None else (0, 0) for one in map(phases, plans)]
        else:
            assert isinstance(op, Conv)  # the callers asked
            plans = op.pool.plan(op, shape)
            tile = tile_of(known, node) or (1,) * len(plans)
            found = [(before, dim_max(0, after)) for before, after in ends_of_tiles(plans, tile)]
    except FactError:
        return None
    return None if _reach_far(plans, found) else found


def _reach_far(plans: Sequence[AxisPlan], found: Sequence[tuple[Dim, Dim]]) -> bool:
    sizes = [size for plan in plans for size in (plan.input, plan.output)]
    if any(is_symbolic(size) for size in (*sizes, *(one for pair in found for one in pair))):
        return any(not is_symbolic(one) and int(one) > _FAR for pair in found for one in pair)
    whole = prod(int(plan.input) + int(a) + int(b) for plan, (a, b) in zip(plans, found, strict=True))
    return whole > _FAR + 4 * (prod(map(int, sizes[::2])) + prod(map(int, sizes[1::2])))


def border_for(known: CpuKnown, outlet: OutletId, form: Form) -> Border:
    """The zeros that convolutions which read a tensor want around it, in the axes of its view in blocks."""
    rank = known.model.outlet_fact(outlet).rank
    border: list[tuple[Dim, Dim]] = [(0, 0)] * (rank + 1)
    for reader in known.model.outlet(outlet).successors:
        op = known.model.nodes[reader.node].op
        if isinstance(op, Conv | Deconv) and reader.slot == 0 and op.pool.data_format.c_axis(rank) == form.axis:
            for place, ends in enumerate(ends_of(known, reader.node) or (), start=op.pool.data_format.h_axis):
                border[place] = (dim_max(border[place][0], ends[0]), dim_max(border[place][1], ends[1]))
    return tuple(border)
