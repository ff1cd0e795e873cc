"""How loops stream: along the signal, they go on from pulse to pulse; across it, each pulse has its own loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_core.dims import ceil_div
from tract_core.ops.scan import Scan, ScannedInput
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode, by_axes, speaks_of
from tract_pulse.pulsing.rate import is_whole
from tract_pulse.registry import PULSE
from tract_pulse.stream import LATE, CannotStream, Stream, Wire

ROWS = Rows()


@ROWS.row(PULSE, Scan)
def pulse_scan(op: Scan, node: PulseNode) -> Sequence[Wire] | None:
    """Along the signal where a scanned input comes along the axis that it is cut along."""
    scanned = [slot for slot, mapping in enumerate(op.inputs) if isinstance(mapping, ScannedInput)]
    along = [slot for slot in scanned if _comes_along(op, node, slot)]
    if not along:
        if all(wire.stream is None for wire in node.wires):
            return None
        return by_axes(node, replace(op, reset_every_turn=True))
    node.wants_whole(*(slot for slot in range(len(op.inputs)) if slot not in along))
    if len(along) < len(scanned):
        raise CannotStream(f"it goes through inputs {scanned} together, of which only {along} are streams")
    mappings = [op.inputs[slot] for slot in along]
    chunks = [mapping.chunk for mapping in mappings if isinstance(mapping, ScannedInput)]
    if any(chunk < 0 for chunk in chunks) or any(one.full is not None and one.full.chunk < 0 for one in op.outputs):
        raise CannotStream(
            "it goes through the signal from the end to the beginning",
            hint="use a recurrence that only goes forward",
        )
    if speaks_of(op, node.rate.symbol):
        raise CannotStream(f"its body needs the length {node.rate.symbol} of the signal")
    return _along(op, node, along, chunks)


def _comes_along(op: Scan, node: PulseNode, slot: int) -> bool:
    mapping, stream = op.inputs[slot], node.wires[slot].stream
    return stream is not None and isinstance(mapping, ScannedInput) and mapping.axis == stream.axis


def _along(op: Scan, node: PulseNode, slots: Sequence[int], chunks: Sequence[int]) -> list[Wire]:
    """Every input is as late as the latest one, counted in iterations, and these are skipped."""
    iterations = [int(ceil_div(node.stream(slot).delay, chunk)) for slot, chunk in zip(slots, chunks, strict=True)]
    late, wires = max(iterations), list(node.wires)
    for slot, chunk in zip(slots, chunks, strict=True):
        if not is_whole(node.pulse(wires[slot]), chunk):
            raise CannotStream(
                f"it takes {chunk} positions at a time, of which a pulse of {node.pulse(wires[slot])} is no multiple"
            )
        wires[slot] = node.delayed(wires[slot], late * chunk - node.stream(slot).delay, suffix=f".delay-{slot}")
    loop = replace(op, skip=op.skip + late, reset_every_turn=False, external_state=False)
    outlets = node.wire_all(loop, *(wire.outlet for wire in wires))
    found = [Wire(LATE)] * len(outlets)
    for mapping in op.outputs:
        if mapping.full is not None:
            axis, chunk, slot = mapping.full.axis, mapping.full.chunk, mapping.full.slot
            found[slot] = Wire(outlets[slot], Stream(axis, late * chunk, node.output_facts[slot].shape[axis]))
    return found
