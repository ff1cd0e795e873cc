"""How pools stream: each pulse sees the end of the one before, and padding counts as what it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tract_core.data import Constant
from tract_core.ops.binary import Div
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.extremes import lowest
from tract_core.ops.pool import MaxPool, Pool, SumPool
from tract_core.ops.pool_spec import ExplicitOnnxPool
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.rules.windows import padding_behind, slid, spatial_axis
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
    kind, axis = node.input_fact(0).datum_type.storage.numpy, _axis(op, node)
    return None if axis is None else slid(op, node, node.wires[0], axis, fill=Constant(np.array(lowest(kind), kind)))


@ROWS.row(PULSE, SumPool)
def pulse_sum_pool(op: SumPool, node: PulseNode) -> Wire | None:
    """A mean that leaves padding out is a sum, divided by how many elements each window has of the signal."""
    zero = Constant(np.zeros((), node.input_fact(0).datum_type.storage.numpy))
    axis = _axis(op, node)
    if axis is None:
        return None
    plan = op.pool.plan(op, node.input_fact(0).shape)[axis]
    if not op.normalize or (plan.before, padding_behind(op.pool, plan)) == (0, 0):
        return slid(op, node, node.wires[0], axis, fill=zero)
    if op.count_include_pad:
        if isinstance(op.pool.padding, ExplicitOnnxPool) and op.pool.padding.ceil_mode:
            raise CannotStream("its mean counts padding, but not what its ceil mode reads behind it")
        return slid(op, node, node.wires[0], axis, fill=zero)
    total = replace(op, normalize=False)
    sums = slid(total, node, node.wires[0], axis, fill=zero, suffix=".sums")
    counts = slid(total, node, _ones(op, node), axis, fill=zero, suffix=".counts")
    return Wire(node.wire(Div(), sums.outlet, counts.outlet), sums.stream)


def _axis(op: Pool, node: PulseNode) -> int | None:
    """The spatial axis along which the stream comes; ``None`` where that is batch or channels."""
    return spatial_axis(op.pool, node.input_fact(0).rank, node.stream(0).axis)


def _ones(op: SumPool, node: PulseNode) -> Wire:
    """A one for each element of the signal, batch and channels left away, as late as the signal."""
    layout, fact = op.pool.data_format, node.fact(node.wires[0])
    one = node.model.add_const(f"{node.name}.one", np.ones([1] * fact.rank, fact.datum_type.storage.numpy))
    shape = layout.replaced([1] * fact.rank, 1, layout.spatial(fact.shape))
    return Wire(node.wire(MultiBroadcastTo(tuple(shape)), one, suffix=".ones"), node.stream(0))
