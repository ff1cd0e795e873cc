"""How tensors that are arranged in other axes stream."""

from __future__ import annotations

from math import gcd

from tract_core.dims import is_symbolic, product, same_dim
from tract_core.ops.axis import Reshape, RmAxis
from tract_core.plugins.tables import Rows
from tract_pulse.bands.analysis import growing
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.pulsing.rate import is_whole
from tract_pulse.registry import PULSE
from tract_pulse.stream import CannotStream, Wire

ROWS = Rows()


@ROWS.row(PULSE, RmAxis)
def pulse_rm_axis(op: RmAxis, node: PulseNode) -> Wire | None:
    """The axis of the stream cannot go: its one position comes in one of the pulses, and is not there in the others."""
    stream = node.wires[0].stream
    if stream is not None and stream.axis == op.axis:
        raise CannotStream(
            "it takes a single position out of the signal, which only one of the pulses has",
            hint="keep the axis, with its one position, as an output of its own",
        )
    return None


@ROWS.row(PULSE, Reshape)
def pulse_reshape(op: Reshape, node: PulseNode) -> Wire | None:
    """The axis of the stream is cut into parts, or taken together with axes behind it, in the same order.

    Of the axes that are rearranged, those before it have the same volume on both sides, so that the elements of a
    pulse lie together there too.
    """
    stream = node.wires[0].stream
    if stream is None or not op.at <= stream.axis < op.at + len(op.before):
        return None
    symbol, place = node.rate.symbol, stream.axis - op.at
    others = [axis - op.at for axis in growing(node.output_facts[0], symbol)]
    if len(others) != 1 or not 0 <= others[0] < len(op.after):
        raise CannotStream(
            "its output does not grow with the signal along one axis",
            hint="keep one axis whose size is that of the signal",
        )
    (target,) = others
    inner, new_inner = _behind(op, place, target)
    block = new_inner // gcd(inner, new_inner)
    pulse = node.pulse(node.wires[0])
    if not is_whole(pulse, block):
        raise CannotStream(
            f"it takes {block} positions together, of which a pulse of {pulse} is no multiple",
            hint=f"take a pulse that is a multiple of {block}",
        )
    wire = node.delayed(node.wires[0], -stream.delay % block)
    assert wire.stream is not None
    before = (*op.before[:place], pulse, *op.before[place + 1 :])
    after = (*op.after[:target], pulse * inner // new_inner, *op.after[target + 1 :])
    outlet = node.wire(Reshape(op.at, before, after), wire.outlet)
    return node.output(outlet, op.at + target, wire.stream.delay * inner // new_inner)


def _behind(op: Reshape, place: int, target: int) -> tuple[int, int]:
    """How many elements one position of the stream has, before and after. ``place``, ``target``: its axis."""
    inner, new_inner = product(op.before[place + 1 :]), product(op.after[target + 1 :])
    lies_together = same_dim(product(op.before[:place]), product(op.after[:target])) is True
    if not lies_together or is_symbolic(inner) or is_symbolic(new_inner):
        raise CannotStream(
            "the elements of a pulse do not lie together in its output",
            hint="leave the axes in front of the signal as they are, and cut those behind into fixed sizes",
        )
    return int(inner), int(new_inner)
