"""How resized axes stream: each output is blended from a few elements around its place, whatever the length is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

from tract_core.dims import Dim
from tract_core.ops.pad import PadEdge
from tract_core.ops.resize import AspectPolicy, Coordinates, Resize, Scales, Sizes, nearby_fraction
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_pulse.ops.pad import PulsePad
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.pulsing.rate import is_whole
from tract_pulse.registry import PULSE
from tract_pulse.rules.windows import no_multiple
from tract_pulse.stream import CannotStream, Wire

ROWS = Rows()

_LOCAL = frozenset({Coordinates.HALF_PIXEL, Coordinates.ASYMMETRIC, Coordinates.TF_HALF_PIXEL_FOR_NN})
"""Where the place of an element does not depend on the sizes."""


@ROWS.row(PULSE, Resize)
def pulse_resize(op: Resize, node: PulseNode) -> Wire | None:
    """Each pulse is resized with as many positions around it as are read, those at the ends of the signal repeated."""
    if node.stream(0).axis not in op.axes:
        return None
    axis, factor = node.stream(0).axis, _factor(op, node)
    op = _local(op, factor)
    unit = factor.denominator
    stretch = max(1.0, 1 / factor) if op.sampling.antialias else 1
    reach = -(-ceil(op.sampling.interpolator.reach / 2 * stretch) // unit) * unit
    wire = node.with_known_end(node.wires[0])
    stream, pulse = wire.stream, node.pulse(wire)
    assert stream is not None
    if not is_whole(pulse, unit):
        raise no_multiple(pulse, unit)
    wire = node.delayed(wire, -stream.delay % unit, 2 * reach)
    assert wire.stream is not None
    begin = wire.stream.delay
    pad = PulsePad(axis, reach, reach, begin, stream.length + begin, PadEdge(), 2 * reach)
    padded = node.kept(pad, wire.outlet, ".pad")
    resized = node.wire(_of_size(op, axis, (pulse + 2 * reach) // unit * factor.numerator), padded, suffix=".resized")
    first = int(reach * factor)
    outlet = node.wire(Slice(axis, first, first + pulse // unit * factor.numerator), resized)
    return node.output(outlet, axis, int((begin - reach) * factor))


def _factor(op: Resize, node: PulseNode) -> Fraction:
    """Output positions per position of the stream. Raises CannotStream where the length of the signal decides."""
    axis = node.stream(0).axis
    if isinstance(op.target, Scales):
        return nearby_fraction(op.target.values[op.axes.index(axis)])
    size, length = op.target.values[op.axes.index(axis)], node.stream(0).length
    grown = [node.rate.growth(one) for one in (size, length)]
    if not any(isinstance(one, int) for one in grown) or op.target.policy is not AspectPolicy.STRETCH:
        raise CannotStream(
            f"it resizes {length} positions to {size}, by a factor that only the end of the signal tells"
        )
    factor = Fraction(int(grown[0]), int(grown[1]))
    if not node.are_equal(size * factor.denominator, length * factor.numerator):
        raise CannotStream(
            f"it resizes {length} positions to {size}, by a factor that only the end of the signal tells",
            hint="resize by a factor, or to a size that is a multiple of the length",
        )
    return factor


def _local(op: Resize, factor: Fraction) -> Resize:
    """The same operator, with coordinates that do not look at sizes. Raises CannotStream where there is none."""
    sampling = op.sampling
    if sampling.coordinates is Coordinates.PYTORCH_HALF_PIXEL and factor >= 2:
        sampling = replace(sampling, coordinates=Coordinates.HALF_PIXEL)
    if sampling.coordinates not in _LOCAL:
        raise CannotStream(
            f"where its elements lie ({sampling.coordinates.value}) depends on the length of the signal",
            hint="resize with the coordinates half_pixel or asymmetric",
        )
    if sampling.exclude_outside:
        raise CannotStream("it leaves out what lies outside of the signal, at both ends of it")
    return replace(op, sampling=sampling)


def _of_size(op: Resize, axis: int, size: Dim) -> Resize:
    if isinstance(op.target, Scales):
        return op
    values = tuple(size if one == axis else value for one, value in zip(op.axes, op.target.values, strict=True))
    return replace(op, target=Sizes(values))
