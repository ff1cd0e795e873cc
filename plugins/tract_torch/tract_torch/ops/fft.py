"""Fourier transforms of real and of complex numbers, of signals, and of their frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim, dim_min, product
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Div, Mul
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Sqrt
from tract_core.ops.fft import ComplexToInnerDim, Fft, InnerDimToComplex, Stft
from tract_core.ops.fft_wiring import first_half, pairs_of_real, real_inverse
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.pad import PadConstant
from tract_core.ops.slice import Slice
from tract_core.ops.wiring_dyn import wire_pad
from tract_core.plugins.tables import Rows
from tract_torch.ops.col2im import overlap_add, window_places
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_BY_ROOT, _BY_COUNT = 1, 2
"""By what a transform is divided: the root of the number of elements, or the number; else nothing."""


def _axes(call: Call, wire: NodeWiring, x: OutletId) -> Sequence[int]:
    return call.axes("dim", wire.rank(x))


def _divided(wire: NodeWiring, x: OutletId, counts: Sequence[Dim], norm: int) -> OutletId:
    if norm not in (_BY_ROOT, _BY_COUNT):
        return x
    count = wire.cast(wire.const(product(counts)), wire.dtype(x))
    return wire.binary(Div(), x, count if norm == _BY_COUNT else wire.op(Sqrt(), count))


@aten(ROWS, "aten._fft_r2c")
def fft_of_real(call: Call, wire: NodeWiring) -> OutletId:
    """Real numbers to their frequencies, of which those of the last axis may be half"""
    x, norm = call.input("self"), call.integer("normalization")
    axes = _axes(call, wire, x)
    pairs = wire.op(Fft(axes[-1]), pairs_of_real(wire, wire.unsqueeze(x, [wire.rank(x)])))
    if call.flag("onesided"):
        pairs = first_half(wire, pairs, axes[-1])
    for axis in axes[:-1]:
        pairs = wire.op(Fft(axis), pairs)
    return wire.op(InnerDimToComplex(), _divided(wire, pairs, [wire.shape(x)[axis] for axis in axes], norm))


@aten(ROWS, "aten._fft_c2c")
def fft_of_complex(call: Call, wire: NodeWiring) -> OutletId:
    """Complex numbers to their frequencies, or back"""
    x, norm = call.input("self"), call.integer("normalization")
    axes = _axes(call, wire, x)
    pairs = wire.op(ComplexToInnerDim(), x)
    for axis in axes:
        pairs = wire.op(Fft(axis, inverse=not call.flag("forward")), pairs)
    return wire.op(InnerDimToComplex(), _divided(wire, pairs, [wire.shape(x)[axis] for axis in axes], norm))


@aten(ROWS, "aten._fft_c2r")
def fft_to_real(call: Call, wire: NodeWiring) -> OutletId:
    """Frequencies, of which those of the last axis are half, back to real numbers"""
    x, norm, last = call.input("self"), call.integer("normalization"), call.dim("last_dim_size")
    axes = _axes(call, wire, x)
    pairs = wire.op(ComplexToInnerDim(), x)
    for axis in axes[:-1]:
        pairs = wire.op(Fft(axis, inverse=True), pairs)
    found = real_inverse(wire, pairs, axes[-1], wire.const(last))
    counts = [*(wire.shape(x)[axis] for axis in axes[:-1]), last]
    return _divided(wire, wire.squeeze(found, [wire.rank(x)]), counts, norm)


@aten(ROWS, "aten.fft_fftshift", "aten.fft_ifftshift")
def shift(call: Call, wire: NodeWiring) -> OutletId:
    """The second half of each axis before the first one, which has one more of an odd size; or the other way round"""
    x = call.input("self")
    axes = call.axes("dim", wire.rank(x)) if call.has("dim") else range(wire.rank(x))
    for axis in axes:
        size = wire.shape(x)[axis]
        middle = size // 2 if "ifftshift" in call.name else (size + 1) // 2
        x = wire.op(TypedConcat(axis), wire.op(Slice(axis, middle, size), x), wire.op(Slice(axis, 0, middle), x))
    return x


@aten(ROWS, "aten.fft_fftfreq", "aten.fft_rfftfreq")
def frequencies(call: Call, wire: NodeWiring) -> OutletId:
    """The frequencies that a transform gives, in cycles per unit of the distance of samples"""
    function = np.fft.rfftfreq if "rfftfreq" in call.name else np.fft.fftfreq
    return wire.const(function(call.integer("n"), call.number("d")).astype(call.kind.numpy))


def _window(call: Call, wire: NodeWiring, like: OutletId, frame: int) -> OutletId | None:
    """The window, which may be shorter than a frame; None where it is 1 all over."""
    window = call.optional_input("window")
    if window is not None or not call.has("win_length") or call.integer("win_length") == frame:
        return window
    return wire.const(np.ones(call.integer("win_length"), wire.dtype(like).numpy))


def _of_frame(wire: NodeWiring, window: OutletId, frame: int) -> OutletId:
    """The window in the middle of a frame, with zeros on both sides."""
    missing = frame - wire.shape(window)[0]
    zero = PadConstant(Constant(np.zeros((), wire.dtype(window).numpy)))
    return wire.through(wire_pad, window, [(missing // 2, missing - missing // 2)], zero)


@aten(ROWS, "aten.stft.default", "tract_torch.stft")
def stft(call: Call, wire: NodeWiring) -> OutletId:
    """The frequencies of the frames of a signal (batch, time): (batch, frequencies, frames)"""
    x, frame = call.input("self"), call.integer("n_fft")
    step = call.integer("hop_length", frame // 4)
    is_real, time = not wire.dtype(x).is_complex(), wire.rank(x) - 1
    pairs = pairs_of_real(wire, wire.unsqueeze(x, [time + 1])) if is_real else wire.op(ComplexToInnerDim(), x)
    found = _frames(wire, pairs, time, _window(call, wire, pairs, frame), frame=frame, step=step)
    if call.flag("onesided", is_real):
        found = first_half(wire, found, time + 1)
    found = _divided(wire, found, [frame], _BY_ROOT if call.flag("normalized") else 0)
    found = wire.transpose(found, [*range(time), time + 1, time, time + 2])
    return wire.op(InnerDimToComplex(), found) if call.result.dtype.is_complex else found


def _frames(
    wire: NodeWiring, pairs: OutletId, time: int, window: OutletId | None, *, frame: int, step: int
) -> OutletId:
    """The transforms of frames: `Stft`; or one after the other where the window is computed."""
    weights = None if window is None else wire.constant(window)
    if window is None or weights is not None:
        return wire.op(Stft(time, frame, step, None if weights is None else Constant(weights)), pairs)
    count = (wire.shape(pairs)[time] - frame) // step + 1
    frames = wire.op(Gather(time), pairs, window_places(wire, count, frame, step))
    window = wire.unsqueeze(_of_frame(wire, wire.cast(window, wire.dtype(pairs)), frame), [1])
    return wire.op(Fft(time + 1), wire.binary(Mul(), frames, window))


@aten(ROWS, "aten.istft", "tract_torch.istft")
def istft(call: Call, wire: NodeWiring) -> OutletId:
    """The signal (batch, time) of whose frames these are the frequencies (batch, frequencies, frames)

    Frames, each times the window, are added up where they overlap, and divided by the squares of the windows there.
    """
    if call.result.dtype.is_complex:
        raise Unsupported("a complex signal of istft", hint="leave return_complex away")
    x, frame = call.input("self"), call.integer("n_fft")
    step = call.integer("hop_length", frame // 4)
    rank, count = wire.rank(x), wire.shape(x)[-1]
    frames = _signals(call, wire, wire.transpose(x, [*range(rank - 2), rank - 1, rank - 2]), frame)
    given = _window(call, wire, frames, frame)
    ones = wire.const(np.ones(frame, wire.dtype(frames).numpy))
    window = ones if given is None else _of_frame(wire, wire.cast(given, wire.dtype(frames)), frame)
    places = wire.reshape(window_places(wire, count, frame, step), (count * frame,))
    length = frame + step * (count - 1)
    weighted = wire.reshape(wire.binary(Mul(), frames, window), (*wire.shape(frames)[:-2], count * frame))
    squares = wire.broadcast(wire.unsqueeze(wire.op(Mul(), window, window), [0]), (count, frame))
    signal = overlap_add(wire, weighted, places, length)
    envelope = overlap_add(wire, wire.reshape(squares, (count * frame,)), places, length)
    return _trimmed(call, wire, (signal, envelope), length, frame)


def _signals(call: Call, wire: NodeWiring, x: OutletId, frame: int) -> OutletId:
    """The signal of each frame: (batch, frames, time in the frame)."""
    axis, pairs = wire.rank(x) - 1, wire.op(ComplexToInnerDim(), x)
    found = real_inverse(wire, pairs, axis, wire.const(frame))  # which needs no more than half of the frequencies
    norm = _BY_ROOT if call.flag("normalized") else _BY_COUNT
    return _divided(wire, wire.squeeze(found, [axis + 1]), [frame], norm)


def _trimmed(call: Call, wire: NodeWiring, pair: tuple[OutletId, OutletId], length: Dim, frame: int) -> OutletId:
    """The signal by its envelope, from the middle of the first frame to that of the last one, or of a given length."""
    start = frame // 2 if call.flag("center") else 0
    end = start + call.dim("length") if call.has("length") else length - start
    inside = dim_min(end, length)
    signal, envelope = (wire.op(Slice(wire.rank(x) - 1, start, inside), x) for x in pair)
    found = wire.binary(Div(), signal, envelope)
    pads = [*((0, 0) for _ in range(wire.rank(found) - 1)), (0, end - inside)]
    return wire.through(wire_pad, found, pads, PadConstant(Constant(np.zeros((), wire.dtype(found).numpy))))
