"""How picked positions stream: those that stand at equal distances, one after the other."""

from __future__ import annotations

import numpy as np

from tract_core.ops.downsample import Downsample
from tract_core.ops.gather import Gather
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.pulsing.rate import is_whole
from tract_pulse.registry import PULSE
from tract_pulse.rules.picked import picked_near
from tract_pulse.rules.windows import no_multiple
from tract_pulse.stream import CannotStream, Wire

ROWS = Rows()


@ROWS.row(PULSE, Gather)
def pulse_gather(op: Gather, node: PulseNode) -> Wire | None:
    """Positions of the signal that are known come as a slice of it would, or as every n-th of them."""
    stream = node.wires[0].stream
    if stream is None or stream.axis != op.axis:
        return None
    places = node.whole.constant(node.node.inputs[1])
    if places is None:
        return picked_near(op, node)
    steps = np.diff(places) if places.ndim == 1 else np.zeros(1)
    step = int(steps[0]) if steps.size else 1
    if places.ndim != 1 or not places.size or step < 1 or (steps != step).any() or places[0] < 0:
        raise CannotStream(
            f"it picks the positions {places.tolist()} out of the signal, which a stream does not bring in that order",
            hint="pick positions that follow each other at equal distances",
        )
    pulse, first = node.pulse(node.wires[0]), stream.delay + int(places[0])
    if step == 1:
        return node.output(node.wires[0].outlet, op.axis, first)
    if not is_whole(pulse, step):
        raise no_multiple(pulse, step)
    outlet = node.wire(Downsample(op.axis, step, first % step), node.wires[0].outlet)
    return node.output(outlet, op.axis, first // step)
