"""A window that slides along the stream: what convolutions, pools and frames have in common."""

from __future__ import annotations

from dataclasses import replace

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.ops.conv import Conv
from tract_core.ops.pad import PadConstant
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import AxisPlan, Explicit, ExplicitOnnxPool, PoolSpec, Window
from tract_pulse.ops.pad import PulsePad
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.pulsing.rate import is_whole
from tract_pulse.stream import CannotStream, Wire


@frozen
class Framing:
    """What goes before a window so that each pulse gives whole outputs, decided.

    ``missing``: positions by which the stream is delayed. ``overlap``: positions of the pulse before that are seen
    again. ``delay``: how late the outputs are, in outputs.
    """

    missing: int
    overlap: int
    delay: int

    @staticmethod
    def of(window: Window, before: int, delay: int) -> Framing:
        """For a padding of ``before`` elements, and a stream that is ``delay`` positions late."""
        stride = window.stride
        overlap = max(0, window.field - stride)
        missing = max(0, before - delay - overlap)
        missing += -(delay + overlap + missing - before) % stride
        return Framing(missing, overlap, (delay + overlap + missing - before) // stride)


def framed(
    node: PulseNode, wire: Wire, window: Window, ends: tuple[Dim, Dim], *, fill: Constant | None, suffix: str = ""
) -> tuple[Wire, int]:
    """A stream with what each pulse needs of the positions before it, and how late the outputs will be.

    ``ends``: how many positions of ``fill`` stand before and behind the signal; the latter may be symbolic. Raises
    CannotStream for a pulse that is no multiple of the stride, and for a padding without a value.
    """
    if ends[1] != 0:
        wire = node.with_known_end(wire)
    stream, pulse = wire.stream, node.pulse(wire)
    assert stream is not None
    if not is_whole(pulse, window.stride):
        raise no_multiple(pulse, window.stride)
    before = node.number(ends[0], "the padding before the signal")
    framing = Framing.of(window, before, stream.delay)
    found = node.delayed(wire, framing.missing, framing.overlap, f"{suffix}.delay")
    untouched = stream.delay == 0 and fill is not None and is_zero(fill)  # a delay begins with zeros
    if ends[1] != 0 or (before and not untouched):
        if fill is None:
            raise CannotStream("its padding has no value that a stream could hold")
        begin = stream.delay + framing.missing + framing.overlap
        pad = PulsePad(stream.axis, before, ends[1], begin, stream.length + begin, PadConstant(fill), framing.overlap)
        found = replace(found, outlet=node.kept(pad, found.outlet, f"{suffix}.pad"))
    return found, framing.delay


def is_zero(value: Constant) -> bool:
    """Whether a value is 0, and not -0.0."""
    array = value.array
    return not array.tobytes().strip(b"\0") if array.dtype != object else False


def slid(
    op: Conv | MaxPool | SumPool, node: PulseNode, wire: Wire, axis: int, *, fill: Constant | None, suffix: str = ""
) -> Wire:
    """The output of an operator whose window slides over ``wire``, which comes along spatial axis number ``axis``.

    ``fill``: what stands for padding. Raises CannotStream as `framed` does.
    """
    plans = op.pool.plan(op, node.input_fact(0).shape)
    ends = (plans[axis].before, padding_behind(op.pool, plans[axis]))
    found, delay = framed(node, wire, plans[axis].window, ends, fill=fill, suffix=suffix)
    others = (one.outlet for one in node.wires[1:])
    op = replace(op, pool=without_padding(op.pool, plans, axis))
    return node.output(node.wire(op, found.outlet, *others, suffix=suffix), node.stream(0).axis, delay)


def summed_axis(pool: PoolSpec, node: PulseNode) -> int | None:
    """The spatial axis along which the stream comes, of an operator that sums over channels; ``None`` for the batch.

    Raises CannotStream where the stream comes along the channels.
    """
    rank, stream = node.input_fact(0).rank, node.stream(0)
    if stream.axis == pool.data_format.c_axis(rank):
        raise CannotStream(
            "the signal comes along the axis of the channels, all of which each output is a sum of",
            hint="transpose the input, so that the signal comes along an axis of the windows",
        )
    return spatial_axis(pool, rank, stream.axis)


def spatial_axis(pool: PoolSpec, rank: int, axis: int) -> int | None:
    """The number of the spatial axis that an axis of the data is; ``None`` for batch and channels."""
    found = axis - pool.data_format.h_axis
    return found if 0 <= found < pool.rank and axis != pool.data_format.c_axis(rank) else None


def without_padding(pool: PoolSpec, plans: tuple[AxisPlan, ...], axis: int) -> PoolSpec:
    """The same windows, with the padding of spatial axis number ``axis`` left away."""
    if plans[axis].before == 0 and plans[axis].after == 0 and not _reaches_beyond(pool):
        return pool
    befores = tuple(0 if index == axis else plan.before for index, plan in enumerate(plans))
    afters = tuple(0 if index == axis else plan.after for index, plan in enumerate(plans))
    if isinstance(pool.padding, ExplicitOnnxPool):
        return replace(pool, padding=ExplicitOnnxPool(befores, afters, pool.padding.ceil_mode))
    return replace(pool, padding=Explicit(befores, afters))


def _reaches_beyond(pool: PoolSpec) -> bool:
    return isinstance(pool.padding, ExplicitOnnxPool) and pool.padding.ceil_mode


def padding_behind(pool: PoolSpec, plan: AxisPlan) -> Dim:
    """How far windows may reach beyond the end of the signal."""
    return plan.overhang if _reaches_beyond(pool) else plan.after


def no_multiple(pulse: Dim, stride: int) -> CannotStream:
    """The error for a pulse of which a stride would take another part each time."""
    return CannotStream(
        f"Pulsification requires pulse ({pulse}) to be a stride ({stride}) multiple",
        hint="take a pulse that is a multiple of all strides that come one after the other",
    )
