"""How stretched tensors stream: a pulse of them at a time."""

from __future__ import annotations

from tract_core.dims import symbols_of
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.stream import CannotStream, Wire

ROWS = Rows()


@ROWS.row(PULSE, MultiBroadcastTo)
def pulse_broadcast(op: MultiBroadcastTo, node: PulseNode) -> Wire | None:
    """What is whole becomes a stream where it is stretched along the signal; a stream is stretched along other axes."""
    axes = [axis for axis, size in enumerate(op.shape) if node.rate.symbol in symbols_of(size)]
    if not axes:
        return None
    if len(axes) > 1:
        raise CannotStream(f"it is stretched along axes {axes}, all of which grow with the signal")
    (axis,), wire, delay = axes, node.wires[0], 0
    size = node.rate.growth(op.shape[axis])
    if wire.stream is not None:
        mapping = node.mapping()
        if mapping is None or mapping.track(("in", 0, wire.stream.axis), ("out", 0)) != axis:
            raise CannotStream(f"it is stretched along axis {axis}, and comes along another one")
        size, delay = node.pulse(wire), wire.stream.delay
    shape = (*op.shape[:axis], size, *op.shape[axis + 1 :])
    return node.output(node.wire(MultiBroadcastTo(shape), wire.outlet), axis, delay)
