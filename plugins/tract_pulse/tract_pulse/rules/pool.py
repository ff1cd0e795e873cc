"""How pools stream: each pulse sees the end of the one before, and padding counts as what it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tract_core.data import Constant
from tract_core.ops.binary import Div
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.pool import MaxPool, Pool, SumPool, lowest
from tract_core.ops.pool_spec import AxisPlan, ExplicitOnnxPool
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.rules.windows import framed, padding_behind, spatial_axis, without_padding
from tract_pulse.stream import CannotStream, Wire

ROWS = Rows()


@ROWS.row(PULSE, MaxPool)
def pulse_max_pool(op: MaxPool, node: PulseNode) -> Wire | None:
    """Padding is what no element is below."""
    if op.indices is not None:
        raise CannotStream(
            "its second output counts elements of the whole signal, whose length only its end tells",
            hint="leave the indices away",
        )
    kind = node.input_fact(0).datum_type.storage.numpy
    return _pooled(op, node, node.wires[0], Constant(np.array(lowest(kind), kind)))


@ROWS.row(PULSE, SumPool)
def pulse_sum_pool(op: SumPool, node: PulseNode) -> Wire | None:
    """A mean that leaves padding out is a sum, divided by how many elements each window has of the signal."""
    zero = Constant(np.zeros((), node.input_fact(0).datum_type.storage.numpy))
    plan = _plan(op, node)
    if plan is None:
        return None
    before, behind = plan.before, padding_behind(op.pool, plan)
    if not op.normalize or (before, behind) == (0, 0):
        return _pooled(op, node, node.wires[0], zero)
    if op.count_include_pad:
        if isinstance(op.pool.padding, ExplicitOnnxPool) and op.pool.padding.ceil_mode:
            raise CannotStream("its mean counts padding, but not what its ceil mode reads behind it")
        return _pooled(op, node, node.wires[0], zero)
    total = replace(op, normalize=False)
    sums = _pooled(total, node, node.wires[0], zero, ".sums")
    counts = _pooled(total, node, _ones(op, node), zero, ".counts")
    assert sums is not None
    assert sums.stream is not None
    assert counts is not None
    return Wire(node.wire(Div(), sums.outlet, counts.outlet), sums.stream)


def _plan(op: Pool, node: PulseNode) -> AxisPlan | None:
    """The windows along the stream; ``None`` where it comes along batch or channels."""
    x = node.input_fact(0)
    axis = spatial_axis(op.pool, x.rank, node.stream(0).axis)
    return None if axis is None else op.pool.plan(op, x.shape)[axis]


def _pooled(op: MaxPool | SumPool, node: PulseNode, wire: Wire, fill: Constant, suffix: str = "") -> Wire | None:
    x, plan = node.input_fact(0), _plan(op, node)
    if plan is None:
        return None
    axis = spatial_axis(op.pool, x.rank, node.stream(0).axis)
    assert axis is not None
    plans = op.pool.plan(op, x.shape)
    ends = (plan.before, padding_behind(op.pool, plan))
    found, delay = framed(node, wire, plan.window, ends, fill=fill, suffix=suffix)
    op = replace(op, pool=without_padding(op.pool, plans, axis))
    return node.output(node.wire(op, found.outlet, suffix=suffix), node.stream(0).axis, delay)


def _ones(op: SumPool, node: PulseNode) -> Wire:
    """A one for each element of the signal, batch and channels left away, as late as the signal."""
    layout, fact = op.pool.data_format, node.fact(node.wires[0])
    one = node.model.add_const(f"{node.name}.one", np.ones([1] * fact.rank, fact.datum_type.storage.numpy))
    shape = layout.replaced([1] * fact.rank, 1, layout.spatial(fact.shape))
    return Wire(node.wire(MultiBroadcastTo(tuple(shape)), one, suffix=".ones"), node.stream(0))
