"""How deconvolutions stream: each pulse sees as many positions of the one before as reach into its outputs."""

from __future__ import annotations

from dataclasses import replace

from tract_core.dims import ceil_div
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool_spec import Explicit
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.rules.windows import summed_axis
from tract_pulse.stream import Wire

ROWS = Rows()


@ROWS.row(PULSE, Deconv)
def pulse_deconv(op: Deconv, node: PulseNode) -> Wire | None:
    """The outputs of a pulse are those that no later position reaches; what is no signal adds nothing to them."""
    node.wants_whole(*range(1, len(node.wires)))
    axis = summed_axis(op.pool, node)
    if axis is None:
        return None
    plans = op.pool.transposed_plan(op, node.input_fact(0).shape, op.adjustments)
    window, cut = plans[axis].window, node.number(plans[axis].before, "what is cut off at the beginning")
    overlap = int(ceil_div(window.field - 1, window.stride))
    wire = _only_signal(node, window.stride, cut)
    assert wire.stream is not None
    late = wire.stream.delay
    wire = node.delayed(wire, 0, overlap)
    before = tuple(overlap * window.stride if one == axis else plan.before for one, plan in enumerate(plans))
    after = tuple(window.field - window.stride if one == axis else plan.after for one, plan in enumerate(plans))
    adjustments = tuple(0 if one == axis else size for one, size in enumerate(op.adjustments))
    op = replace(op, pool=replace(op.pool, padding=Explicit(before, after)), adjustments=adjustments)
    outlet = node.wire(op, wire.outlet, *(one.outlet for one in node.wires[1:]))
    return node.output(outlet, node.stream(0).axis, late * window.stride + cut)


def _only_signal(node: PulseNode, stride: int, cut: int) -> Wire:
    """The input, with zeros where it is no signal, as far as that can reach an output."""
    wire, length = node.wires[0], node.output_facts[0].shape[node.stream(0).axis]
    signal = node.stream(0).length
    last, known = signal * stride, node.whole.known
    reaches = known.less_or_equal(length + cut, last) is not True and not node.rate.lengths.at_most(length + cut, last)
    if reaches:
        wire = node.with_known_end(wire)
    stream = wire.stream
    assert stream is not None
    if not reaches and not stream.delay:
        return wire
    return node.masked(wire, 0)
