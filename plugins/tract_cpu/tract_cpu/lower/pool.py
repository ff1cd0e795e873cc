"""Pools: which lines they have. Tensors that are there in blocks of channels only are pooled there."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.program.loops import collapsed
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, product
from tract_core.frozen import frozen
from tract_core.ops.pool import MaxPool, Pool, SumPool
from tract_core.ops.pool_spec import AxisPlan
from tract_core.ops.reduce import Reducer
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.group.pool import line_length
from tract_cpu.kernels.pool import PoolPlan
from tract_cpu.kernels.pool_places import PoolPlacesPlan
from tract_cpu.kernels.runs import Run
from tract_cpu.place.blocked import operands_in_blocks, to_blocks
from tract_cpu.place.chain import PlacedChain, near, placed
from tract_cpu.place.wholes import result_for
from tract_cpu.program.arguments import Given, arguments, each_loop, each_target
from tract_cpu.program.program import NativeStep
from tract_cpu.table import CPU

ROWS = Rows()

_ALIGNED = 64
"""Elements; what a line in scratch memory is rounded up to, more than vectors reach behind its end."""


_PLACES = 32
"""Bits of the narrowest elements that places are found of in whole vectors: there are 64 bits to each place."""


@frozen
class _What:
    """What is computed. ``mean``: whether sums are divided by how many elements count; ``padding``: if that counts."""

    op: Pool
    reducer: Reducer
    mean: bool = False
    padding: bool = False


@ROWS.row(CPU, MaxPool)
def lower_max_pool(op: MaxPool, site: Site) -> str | None:
    """The largest element of each window, and its place where that is asked for."""
    if op.indices is None:
        _lower(_What(op, Reducer.MAX), site)
    else:
        site.add(_with_places(op, site))
    return None


@ROWS.row(CPU, SumPool)
def lower_sum_pool(op: SumPool, site: Site) -> str | None:
    """The sum of each window, or its mean."""
    _lower(_What(op, Reducer.SUM, mean=op.normalize, padding=op.normalize and op.count_include_pad), site)
    return None


@frozen
class _Parts:
    """``spatial``: which axes of the views windows move along; ``grouped``: whether the last axis has channels.

    ``chain``: what becomes of windows; ``result``: where that goes.
    """

    source: View
    spatial: range
    grouped: bool
    chain: PlacedChain
    result: View


def _lower(what: _What, site: Site) -> None:
    lowering, layout, outlet, form = site.lowering, what.op.pool.data_format, site.node.inputs[0], site.group.form
    spatial = range(layout.h_axis, layout.h_axis + what.op.pool.rank)
    if form is not None:
        source, grouped = to_blocks(lowering, outlet, form, ((0, 0),) * (site.facts()[0].rank + 1)), True
    else:
        source, grouped = site.known_inputs()[0], not layout.channels_first
        channels: Dim = source.shape[-1] if grouped else 1
        if source.strides[spatial[-1]] != channels or (grouped and source.strides[-1] != 1):
            source = lowering.contiguous(source)
    chain = placed(site, near(lowering) if form is None else operands_in_blocks(lowering, form))
    result = result_for(lowering, chain.outlet, form)
    site.add(_step(site, what, _Parts(source, spatial, grouped, chain, result)))


def _step(site: Site, what: _What, parts: _Parts) -> NativeStep:
    """The call of the kernel."""
    source, element, spatial = parts.source, parts.source.element, parts.spatial
    tensors = (*parts.chain.operands, parts.result)
    channels: Dim = source.shape[-1] if parts.grouped else 1
    inner = len(source.shape) - parts.grouped
    outer = [axis for axis in range(inner) if axis not in spatial]
    loops = collapsed([source.shape[a] for a in outer], [[v.strides[a] for a in outer] for v in (source, *tensors)])
    plans = what.op.pool.plan(what.op, site.facts()[0].shape)
    plan = PoolPlan(
        element,
        what.reducer,
        what.op.pool.windows,
        len(loops),
        what.mean,
        parts.grouped,
        site.isa.lanes(element.computed.bits),
        site.isa.masks_bits <= min(view.element.bits for view in (source, *tensors)),
        parts.chain.expression,
        tuple(view.strides[-1] != 0 for view in parts.chain.operands),
    )
    length = line_length(plans[-1])
    room = (ceil_div(length * channels, _ALIGNED) + 3) * _ALIGNED
    given = arguments(
        plan,
        source=source.address,
        channels=channels,
        axes=_axes(plans, [source.strides[axis] for axis in spatial], padding=what.padding),
        outer=[{"size": loop.size, "strides": loop.strides[:1]} for loop in loops],
        targets=each_target(tensors, loops, spatial),
        length=length,
        ones=room,
    )
    lines = product([*(loop.size for loop in loops), *(one.output for one in plans[:-1])])
    scratch = room * (element.computed.bytes * (2 if what.mean else 1))
    work = product(parts.result.shape) * product(window.kernel for window in what.op.pool.windows)
    return NativeStep(plan, given, lines, parts.chain.nodes, (parts.result.storage,), scratch, work)


def _with_places(op: MaxPool, site: Site) -> NativeStep:
    """The call of the kernel that finds places too."""
    layout, source = op.pool.data_format, site.lowering.contiguous(site.known_inputs()[0])
    values, places = site.results()
    grouped = not layout.channels_first
    spatial = range(layout.h_axis, layout.h_axis + op.pool.rank)
    narrowest = min(source.element.bytes, places.element.bytes) * 8
    run = Run(site.isa.lanes(max(source.element.bits, _PLACES)), site.isa.masks_bits <= narrowest)
    loops = collapsed(source.shape[: spatial[0]], [source.strides[: spatial[0]]])
    plan = PoolPlacesPlan(source.element, places.element, op.pool.windows, len(loops), grouped, run)
    plans = op.pool.plan(op, site.facts()[0].shape)
    given = arguments(
        plan,
        source=source.address,
        values=values.address,
        places=places.address,
        line=values.shape[-1],
        axes=_axes(plans, [source.strides[axis] for axis in spatial], padding=False),
        outer=each_loop(loops),
    )
    work = product(values.shape) * product(window.kernel for window in op.pool.windows)
    results = (values.storage, places.storage)
    return NativeStep(plan, given, product(values.shape[:-1]), (site.node.node,), results, work=work)


def _axes(plans: Sequence[AxisPlan], strides: Sequence[Dim], *, padding: bool) -> list[dict[str, Given]]:
    """What kernels are told of each spatial axis. ``padding``: whether positions in it count."""
    return [
        {
            "size": one.input,
            "output": one.output,
            "before": one.before,
            "low": -one.before if padding else 0,
            "high": one.input + one.after if padding else one.input,
            "stride": stride,
        }
        for one, stride in zip(plans, strides, strict=True)
    ]
