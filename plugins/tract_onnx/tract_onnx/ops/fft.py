"""Fourier transforms, and the matrix that turns frequencies into those of the ear's scale.

A complex number is a pair of real ones on a last axis of size 2; a real one stands on a last axis of size 1.
"""

from __future__ import annotations

from tract_core.data import Constant, DatumType
from tract_core.dims import is_symbolic
from tract_core.errors import FactError, Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Eq, Lt, Mul, Sub
from tract_core.ops.fft import Fft, Stft
from tract_core.ops.fft_wiring import first_half, of_length, pairs_of_real, real_inverse
from tract_core.ops.gather import Gather
from tract_core.ops.wiring_dyn import wire_move_axes, wire_range
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.mel import MelWeightMatrix
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "DFT", since=17)
def dft_17(node: OnnxNode, wire: Wiring) -> OutletId:
    """The axis is an attribute"""
    return _dft(node, wire, wire.input(0), node.integer("axis", 1))


@onnx_op(ROWS, "DFT", since=20)
def dft_20(node: OnnxNode, wire: Wiring) -> OutletId:
    """The axis is an input"""
    x, given = wire.input(0), wire.optional_input(2)
    known = (-2,) if given is None else wire.ints(wire.number(given), "axis of DFT")
    if given is None or known is not None:
        return _dft(node, wire, x, -2 if known is None else known[0])
    return _dft_computed(node, wire, x, wire.i64(wire.number(given)))


def _dft_computed(node: OnnxNode, wire: Wiring, x: OutletId, axis: OutletId) -> OutletId:
    """Along an axis that only a run can tell: it is moved to where it is known, in front of the parts."""
    rank = wire.rank(x)
    from_front = wire.select(wire.op(Lt(), axis, wire.const(0)), wire.op(Add(), axis, wire.const(rank)), axis)
    is_parts = wire.op(Eq(), from_front, wire.const(rank - 1))
    # There is no axis `rank`: the run is refused, as it is for any axis that is not there.
    axes = wire.unsqueeze(wire.select(is_parts, wire.const(rank), from_front), [0])
    sizes = [*(wire.symbol("dft") for _ in range(rank - 2)), _parts(wire, x), wire.symbol("dft")]
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    moved = wire.transpose(wire.through(wire_move_axes, x, axes, sizes=sizes), swapped)
    result = _dft(node, wire, moved, rank - 2)
    return wire.through(wire_move_axes, wire.transpose(result, swapped), axes, back=True)


def _dft(node: OnnxNode, wire: Wiring, x: OutletId, axis: int) -> OutletId:
    length = wire.optional_input(1)
    axis = wire.axis(axis, wire.rank(x))
    if axis == wire.rank(x) - 1:
        raise FactError(f"DFT along the last axis of {wire.fact(x)}, which holds the parts of complex numbers")
    inverse, onesided = node.flag("inverse"), node.flag("onesided")
    parts = _parts(wire, x)
    if onesided and parts != (2 if inverse else 1):
        wanted = "complex numbers back" if inverse else "real numbers"
        raise FactError(f"DFT with onesided=1 transforms {wanted}, found {wire.fact(x)}")
    pairs = _pairs(wire, x)
    length = None if length is None else wire.i64(wire.number(length))
    if inverse and onesided:
        length = wire.const(2 * (wire.shape(pairs)[axis] - 1)) if length is None else length
        count = wire.cast(length, wire.dtype(pairs))
        return wire.binary(Div(), real_inverse(wire, pairs, axis, length), count)
    signal = pairs if length is None else of_length(wire, pairs, axis, length)
    result = wire.op(Fft(axis, inverse), signal)
    if inverse:
        return _divided(wire, result, axis)
    return first_half(wire, result, axis) if onesided else result


def _parts(wire: Wiring, x: OutletId) -> int:
    """The size of the last axis: 1 for real numbers, 2 for complex ones. Raises FactError for another one."""
    fact = wire.fact(x)
    size = fact.shape[-1] if fact.rank else 0
    if is_symbolic(size):
        raise Unsupported(f"whether {fact} holds real or complex numbers must be known when the model is loaded")
    if size not in (1, 2):
        raise FactError(f"a last axis of size 1 or 2, for real or complex numbers, is wanted, found {fact}")
    return int(size)


def _pairs(wire: Wiring, x: OutletId) -> OutletId:
    """Complex numbers; real ones get an imaginary part of 0."""
    return x if _parts(wire, x) == 2 else pairs_of_real(wire, x)


def _divided(wire: Wiring, x: OutletId, axis: int) -> OutletId:
    """``x`` divided by the number of its elements on an axis."""
    count = wire.cast(wire.const(wire.shape(x)[axis]), wire.dtype(x))
    return wire.binary(Div(), x, count)


@onnx_op(ROWS, "STFT", since=17)
def stft(node: OnnxNode, wire: Wiring) -> OutletId:
    """The transforms of pieces of a signal: [batch, pieces, frequencies, 2]"""
    signal, window = wire.input(0), wire.optional_input(2)
    if wire.rank(signal) == 2:  # as files have it that ONNX Runtime takes: real numbers
        signal = wire.unsqueeze(signal, [2])
    if wire.rank(signal) != 3:
        raise FactError(f"STFT wants a signal of shape [batch, length, 1 or 2], found {wire.fact(signal)}")
    onesided = node.flag("onesided", True)
    if window is not None and wire.rank(window) != 1:
        raise FactError(f"STFT wants a window of one axis, found {wire.fact(window)}")
    if onesided and _parts(wire, signal) != 1:
        raise FactError(f"STFT with onesided=1 transforms real numbers, found {wire.fact(signal)}")
    frame, stride = _frame(wire, signal, window), wire.i64(wire.number(wire.input(1)))
    result = _frames_transformed(wire, _pairs(wire, signal), window, frame=frame, stride=stride)
    return first_half(wire, result, 2) if onesided else result


def _frame(wire: Wiring, signal: OutletId, window: OutletId | None) -> OutletId:
    """The length of a piece: as given, that of the window, or all of the signal."""
    given = wire.optional_input(3)
    if given is not None:
        return wire.i64(wire.number(given))
    return wire.const(wire.shape(signal)[1] if window is None else wire.shape(window)[0])


def _frames_transformed(
    wire: Wiring, x: OutletId, window: OutletId | None, *, frame: OutletId, stride: OutletId
) -> OutletId:
    """`Stft` where all parameters are known; otherwise the pieces are gathered, weighted and transformed."""
    sizes = [wire.constant(size) for size in (frame, stride)]
    weights = None if window is None else wire.constant(window)
    if all(size is not None for size in sizes) and (window is None or weights is not None):
        length, step = (int(size) for size in sizes if size is not None)
        return wire.op(Stft(1, length, step, None if weights is None else Constant(weights)), x)
    zero, one = wire.const(0), wire.const(1)
    end = wire.op(Add(), wire.op(Sub(), wire.const(wire.shape(x)[1]), frame), one)
    starts, offsets = (wire.through(wire_range, zero, *bounds) for bounds in ((end, stride), (frame, one)))
    places = wire.op(Add(), wire.unsqueeze(starts, [1]), wire.unsqueeze(offsets, [0]))
    frames = wire.op(Gather(1), x, places)
    if window is not None:
        frames = wire.binary(Mul(), frames, wire.unsqueeze(window, [1]))
    return wire.op(Fft(2), frames)


@onnx_op(ROWS, "MelWeightMatrix", since=17)
def mel_weight_matrix(node: OnnxNode, wire: Wiring) -> OutletId:
    """How much of each frequency belongs to each band"""
    numbers = [wire.number(wire.input(slot)) for slot in range(5)]
    bands, length = wire.dims(numbers[0]), wire.dims(numbers[1])
    op = MelWeightMatrix(
        node.element_type("output_datatype", DatumType.F32),
        bands=wire.symbol("bands") if bands is None else bands[0],
        frequencies=wire.symbol("frequencies") if length is None else length[0] // 2 + 1,
    )
    return wire.op(op, *numbers)
