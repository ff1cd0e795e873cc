"""Operators that look at all of an axis at once: along the signal, only its end would tell what they give."""

from __future__ import annotations

from typing import Final

from tract_core.dims import Dim
from tract_core.ops.compress import Compress
from tract_core.ops.einsum import EinSum
from tract_core.ops.fft import Fft
from tract_core.ops.lrn import Lrn
from tract_core.ops.non_zero import NonZero
from tract_core.ops.norm import RmsNorm
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import SoftmaxOp
from tract_core.ops.tile import DynTile, Tile
from tract_core.ops.topk import Topk
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.stream import CannotStream

ROWS = Rows()

_ARG: Final = frozenset({Reducer.ARG_MIN_FIRST, Reducer.ARG_MIN_LAST, Reducer.ARG_MAX_FIRST, Reducer.ARG_MAX_LAST})
_WINDOW: Final = "over a window of fixed length"


@ROWS.row(PULSE, SoftmaxOp)
def pulse_softmax(op: SoftmaxOp, node: PulseNode) -> None:
    """Across the stream only."""
    if _comes_along(node, op.axes):
        raise CannotStream(
            "it divides by a sum over the whole signal, which only its end tells",
            hint=f"normalise over another axis, or {_WINDOW}, as attention with a mask in bands or blocks does",
        )


@ROWS.row(PULSE, RmsNorm)
def pulse_rms_norm(op: RmsNorm, node: PulseNode) -> None:
    """Across the stream only."""
    if _comes_along(node, (op.axis,)):
        raise CannotStream(
            "it divides by a mean over the whole signal, which only its end tells",
            hint="normalise over another axis, as that of the channels, or by a mean that forgets (exponential norms)",
        )


@ROWS.row(PULSE, Reduce)
def pulse_reduce(op: Reduce, node: PulseNode) -> None:
    """Across the stream only."""
    if not _comes_along(node, op.axes):
        return
    if op.reducer in _ARG:
        hint = f"look for the place on another axis, or {_WINDOW}"
    elif op.reducer in (Reducer.MIN, Reducer.MAX):
        hint = f"take it {_WINDOW}: a max pool"
    else:
        hint = f"take it {_WINDOW}, a pool, or up to each position, a running sum (CumSum)"
    raise CannotStream(f"it takes the {op.reducer.value} over the whole signal, which only its end tells", hint=hint)


@ROWS.row(PULSE, Topk)
def pulse_topk(op: Topk, node: PulseNode) -> None:
    """Across the stream only."""
    if _comes_along(node, (op.axis,)):
        raise CannotStream(
            "it sorts the whole signal, whose last position may come first",
            hint="sort along another axis, or take the maximum of windows: a max pool",
        )


@ROWS.row(PULSE, Tile)
def pulse_tile(op: Tile, node: PulseNode) -> None:
    """Across the stream only."""
    if _comes_along(node, [axis for axis, count in enumerate(op.multipliers) if not _is_one(count)]):
        raise CannotStream(
            "it repeats the signal behind its end, for which all of it would have to be kept",
            hint="repeat along another axis, or each position as it comes (Resize to the nearest)",
        )


@ROWS.row(PULSE, DynTile)
def pulse_dyn_tile(op: DynTile, node: PulseNode) -> None:
    """How often is only known in the run."""
    if any(wire.stream is not None for wire in node.wires):
        raise CannotStream("it repeats its input, how often is only known in the run", hint="give constant repeats")


@ROWS.row(PULSE, Fft)
def pulse_fft(op: Fft, node: PulseNode) -> None:
    """Across the stream only."""
    if _comes_along(node, (op.axis,)):
        raise CannotStream(
            "each frequency is a sum over the whole signal, which only its end tells",
            hint="transform frames of the signal: a short-time Fourier transform (STFT)",
        )


@ROWS.row(PULSE, Lrn)
def pulse_lrn(op: Lrn, node: PulseNode) -> None:
    """Across the stream only."""
    if _comes_along(node, (op.axis,)):
        raise CannotStream(
            "it normalises over neighbours along the signal", hint="let the signal come along another axis"
        )


@ROWS.row(PULSE, NonZero, Compress)
def pulse_non_zero(op: NonZero | Compress, node: PulseNode) -> None:
    """Across the stream only."""
    axis = op.axis if isinstance(op, Compress) else None
    if any(wire.stream is not None and axis in (None, wire.stream.axis) for wire in node.wires):
        raise CannotStream(
            "how many positions it gives for a pulse depends on what is in it",
            hint="keep all positions, and multiply those that are not wanted by 0",
        )


@ROWS.row(PULSE, EinSum)
def pulse_einsum(op: EinSum, node: PulseNode) -> None:
    """Along an axis that the output has."""
    (output,) = op.axes.outputs
    for slot, (wire, term) in enumerate(zip(node.wires, op.axes.inputs, strict=True)):
        if wire.stream is not None and term[wire.stream.axis] not in output:
            raise CannotStream(
                f"it adds up products over the whole signal, along axis {wire.stream.axis} of input {slot}",
                hint="multiply along another axis; attention streams where a mask in bands or blocks bounds its reach",
            )


def _comes_along(node: PulseNode, axes: list[int] | tuple[int, ...]) -> bool:
    """Whether the first input comes along one of these axes."""
    stream = node.wires[0].stream
    return stream is not None and stream.axis in axes


def _is_one(count: Dim) -> bool:
    return isinstance(count, int) and count == 1
