"""Fourier transforms, and complex numbers."""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.ops.fft import ComplexToInnerDim, Fft, InnerDimToComplex
from tract_core.ops.fft_wiring import first_half, of_length, pairs_of_real
from tract_core.ops.polar_wiring import wire_hypot
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "RFFT2D")
def rfft_2d(node: TfliteNode, wire: Wiring) -> Wired:
    """Over the last two axes, in given lengths; of the last one the frequencies up to half of their number"""
    x, lengths = wire.tensor(0), wire.i64(wire.input(1))
    if x.rank < 2 or wire.count(lengths, "lengths") != 2:
        raise FactError(f"RFFT2D wants at least two axes and two lengths, found {x.fact} and {wire.fact(lengths)}")
    signal = pairs_of_real(wire, x.unsqueeze([x.rank]).outlet)
    for place, axis in enumerate((x.rank - 2, x.rank - 1)):
        signal = of_length(wire, signal, axis, wire.element(lengths, place))
    half = first_half(wire, wire.op(Fft(x.rank - 1), signal), x.rank - 1)
    return Wired(wire, wire.op(InnerDimToComplex(), wire.op(Fft(x.rank - 2), half)))


@tflite_op(ROWS, "REAL")
def real(node: TfliteNode, wire: Wiring) -> Wired:
    """The real parts"""
    return _parts(wire)[0]


@tflite_op(ROWS, "IMAG")
def imag(node: TfliteNode, wire: Wiring) -> Wired:
    """The imaginary parts"""
    return _parts(wire)[1]


@tflite_op(ROWS, "COMPLEX_ABS")
def complex_abs(node: TfliteNode, wire: Wiring) -> Wired:
    """The magnitudes"""
    return wire_hypot(*_parts(wire))


def _parts(wire: Wiring) -> tuple[Wired, Wired]:
    pairs = wire.tensor(0).op(ComplexToInnerDim())
    return pairs[..., 0], pairs[..., 1]
