"""Pools: which lines they have."""

from __future__ import annotations

from tract_core.dims import Dim, ceil_div, dim_max, product
from tract_core.ops.pool import MaxPool, Pool, SumPool
from tract_core.ops.pool_spec import AxisPlan
from tract_core.ops.reduce import Reducer
from tract_core.plugins.tables import Rows
from tract_cpu.kernels.pool import PoolPlan
from tract_cpu.lower.loops import collapsed
from tract_cpu.lower.lowering import CPU, Site
from tract_cpu.lower.program import Argument, NativeStep

ROWS = Rows()

_ALIGNED = 64
"""Elements; what a line in scratch memory is rounded up to, more than vectors reach behind its end."""


@ROWS.row(CPU, MaxPool)
def lower_max_pool(op: MaxPool, site: Site) -> str | None:
    """The largest element of each window."""
    if op.indices is not None:
        return "there is no native code for the places of the largest elements yet"
    return _lower(op, Reducer.MAX, site, None)


@ROWS.row(CPU, SumPool)
def lower_sum_pool(op: SumPool, site: Site) -> str | None:
    """The sum of each window, or its mean."""
    return _lower(op, Reducer.SUM, site, op)


def _lower(op: Pool, reducer: Reducer, site: Site, sums: SumPool | None) -> str | None:
    layout, rank, source = op.pool.data_format, op.pool.rank, site.known_inputs()[0]
    axes = range(layout.h_axis, layout.h_axis + rank)
    channels: Dim = 1 if layout.channels_first else source.shape[-1]
    if source.strides[axes[-1]] != channels or (not layout.channels_first and source.strides[-1] != 1):
        source = site.lowering.contiguous(source)
    plans = op.pool.plan(op, source.shape)
    result = site.lowering.new(site.outlet)
    outer = range(layout.h_axis)
    loops = collapsed([source.shape[a] for a in outer], [[source.strides[a] for a in outer]])
    element = source.element
    lanes = site.isa.lanes(element.computed.bits)
    mean = sums is not None and sums.normalize
    masked = site.isa.masks_bits <= element.bits
    grouped = not layout.channels_first
    plan = PoolPlan(element, reducer, op.pool.windows, len(loops), mean, grouped, lanes, masked)
    include = sums is not None and sums.count_include_pad
    arguments: list[Argument] = [source.address, result.address, channels]
    for axis, one in zip(axes, plans, strict=True):
        arguments += [one.input, one.output, one.before, *_counted(one, include=include), source.strides[axis]]
    for loop in loops:
        arguments += [loop.size, loop.strides[0]]
    last = plans[-1]
    length = dim_max(last.before + last.input, (last.output - 1) * last.window.stride + last.window.field)
    room = (ceil_div(length * channels, _ALIGNED) + 3) * _ALIGNED
    arguments += [length, room]
    lines = product([*(loop.size for loop in loops), *(one.output for one in plans[:-1])])
    scratch = room * (element.computed.bytes * (2 if mean else 1))
    work = product(result.shape) * product(window.kernel for window in op.pool.windows)
    step = NativeStep(plan, tuple(arguments), lines, (site.node.node,), (result.storage,), scratch, work)
    site.add(step)
    return None


def _counted(plan: AxisPlan, *, include: bool) -> tuple[Dim, Dim]:
    """The first position that counts, and the one behind the last."""
    return (-plan.before, plan.input + plan.after) if include else (0, plan.input)
