"""Positions that are picked by numbers which go along with the signal: each comes from near by."""

from __future__ import annotations

from math import lcm

import numpy as np

from tract_core.dims import ceil_div, is_symbolic
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Max, Min, Sub
from tract_core.ops.gather import Gather
from tract_core.plugins.keys import Array
from tract_pulse.bands.analysis import LARGEST_UNIT, Along, BandAnalysis, Side
from tract_pulse.bands.far import Far
from tract_pulse.ops.range import PulseRange
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.stream import CannotStream, Wire


@frozen
class Near:
    """The number in row i is from ``step * i + first`` to ``step * i + last``."""

    step: int
    first: int
    last: int


def picked_near(op: Gather, node: PulseNode) -> Wire:
    """A window of the signal for the rows of each pulse, in which the numbers are counted from its beginning.

    Raises CannotStream where nothing shows that each number is near to its own position, times a step.
    """
    near = _near(node)
    data, places = node.wires[0], node.wires[1]
    mapping = node.mapping()
    if near is None or places.stream is None or data.stream is None or mapping is None:
        raise CannotStream(
            "it picks positions out of the signal that are only known in the run, and may lie behind what has come",
            hint="pick constant positions, or such as i + 3, computed from the position i; or along another axis",
        )
    pulse, rows = node.pulse(data), node.pulse(places)
    if is_symbolic(pulse) or is_symbolic(rows) or pulse != rows * near.step:
        raise CannotStream(
            f"a pulse of {pulse} positions brings {rows} of those that are picked, {near.step} apart",
            hint="take a pulse that is a number, and a multiple of all strides",
        )
    overlap = max(0, near.last - near.first + 1 - near.step)
    needed = int(ceil_div(max(0, data.stream.delay + near.first + overlap), near.step))
    delay = max(needed, places.stream.delay)
    start = near.step * delay - near.first
    window = node.delayed(data, start - overlap - data.stream.delay, overlap)
    places = node.delayed(places, delay - places.stream.delay, suffix=".rows")
    found = node.wire(op, window.outlet, _local(node, places, -start, int(pulse) + overlap))
    axis = mapping.track(("in", 1, places.stream.axis), ("out", 0)) if places.stream is not None else None
    if axis is None:
        raise CannotStream("the axis of the stream has no place in its output")
    return node.output(found, axis, delay)


def _local(node: PulseNode, places: Wire, first: int, size: int) -> OutletId:
    """The numbers, counted from the beginning of a window of ``size`` positions, which is at ``first`` to begin with.

    Those of no row of the signal may be anything: they are brought into the window, as it takes no others.
    """
    fact, model = node.fact(places), node.model
    kind = fact.datum_type.storage.numpy
    pulse = int(node.pulse(node.wires[0]))
    start, step = (model.add_const(f"{node.name}.begin", np.array(number, kind)) for number in (first, pulse))
    begin = node.wire(PulseRange(1), start, step, suffix=".begin")
    for axis in range(1, fact.rank):
        begin = node.wire(AddAxis(axis), begin, suffix=".begin")
    found = node.wire(Sub(), places.outlet, begin, suffix=".in_window")
    for op, bound in ((Max(), 0), (Min(), size - 1)):
        limit = model.add_const(f"{node.name}.limit", np.full((1,) * fact.rank, bound, kind))
        found = node.wire(op, found, limit, suffix=".in_window")
    return found


def _near(node: PulseNode) -> Near | None:
    """How far the numbers are from their own positions, if that has limits, and none of them counts from the end."""
    stream = node.wires[1].stream
    if stream is None:
        return None
    unit = 1
    while True:
        analysis = BandAnalysis(node.whole, node.rate.symbol, unit, Side.AHEAD)
        far = analysis.far(node.node.inputs[1], Along(stream.axis, None))
        wanted = lcm(unit, *analysis.units)
        if wanted == unit or wanted > LARGEST_UNIT:
            return _near_of(far, unit)
        unit = wanted


def _near_of(far: Far, unit: int) -> Near | None:
    step = far.per_block.max() / unit
    steady = (far.per_block == step * unit).all() and (far.per_distance == 0).all() and (far.beyond == -np.inf).all()
    if not steady or step < 1 or step % 1 or not far.is_bounded.all() or far.low.min() < 0:
        return None
    rows: Array = np.arange(far.low.shape[0], dtype=np.float64)[:, None] * step
    return Near(int(step), int((far.low - rows).min()), int((far.high - rows).max()))
