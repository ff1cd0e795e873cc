"""How convolutions stream: each pulse sees the end of the one before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tract_core.data import Constant
from tract_core.ops.conv import Conv
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.rules.windows import framed, padding_behind, spatial_axis, without_padding
from tract_pulse.stream import CannotStream, Wire

ROWS = Rows()


@ROWS.row(PULSE, Conv)
def pulse_conv(op: Conv, node: PulseNode) -> Wire | None:
    """Along a spatial axis; along the batch, each position is computed from itself."""
    node.wants_whole(*range(1, len(node.wires)))
    x, stream = node.input_fact(0), node.stream(0)
    axis = spatial_axis(op.pool, x.rank, stream.axis)
    if axis is None:
        if stream.axis == op.pool.data_format.c_axis(x.rank):
            raise CannotStream(
                "the signal comes along the axis of the channels, all of which each output is a sum of",
                hint="transpose the input, so that the signal comes along an axis of the windows",
            )
        return None
    plans = op.pool.plan(op, x.shape)
    plan = plans[axis]
    ends = (plan.before, padding_behind(op.pool, plan))
    wire, delay = framed(node, node.wires[0], plan.window, ends, fill=_zero(op, node))
    op = replace(op, pool=without_padding(op.pool, plans, axis))
    return node.output(node.wire(op, wire.outlet, *(one.outlet for one in node.wires[1:])), stream.axis, delay)


def _zero(op: Conv, node: PulseNode) -> Constant | None:
    """What stands for zero in the data; ``None`` where only a run tells."""
    kind = node.input_fact(0).datum_type.storage.numpy
    if op.q_output is None:
        return Constant(np.zeros((), kind))
    zero_point = node.whole.constant(node.node.inputs[3])
    return None if zero_point is None else Constant(zero_point.reshape(()).astype(kind))
