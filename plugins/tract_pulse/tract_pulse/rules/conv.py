"""How convolutions stream: each pulse sees the end of the one before."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant
from tract_core.ops.conv import Conv
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.rules.windows import slid, summed_axis
from tract_pulse.stream import Wire

ROWS = Rows()


@ROWS.row(PULSE, Conv)
def pulse_conv(op: Conv, node: PulseNode) -> Wire | None:
    """Along a spatial axis; along the batch, each position is computed from itself."""
    node.wants_whole(*range(1, len(node.wires)))
    axis = summed_axis(op.pool, node)
    return None if axis is None else slid(op, node, node.wires[0], axis, fill=_zero(op, node))


def _zero(op: Conv, node: PulseNode) -> Constant | None:
    """What stands for zero in the data; ``None`` where only a run tells."""
    kind = node.input_fact(0).datum_type.storage.numpy
    if op.q_output is None:
        return Constant(np.zeros((), kind))
    zero_point = node.whole.constant(node.node.inputs[3])
    return None if zero_point is None else Constant(zero_point.reshape(()).astype(kind))
