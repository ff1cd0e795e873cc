"""Fourier transforms, and what is done with complex numbers.

A complex number of the core is a pair of real ones on a last axis of size 2; between these nodes it is one element.
"""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.fft import ComplexToInnerDim, Fft, InnerDimToComplex
from tract_core.ops.fft_wiring import first_half, of_length, pairs_of_real, real_inverse
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


def _pairs(wire: GraphWiring) -> Wired:
    """The parts of complex numbers, on a last axis."""
    x = wire.tensor(0)
    if not x.dtype.is_complex():
        raise FactError(f"complex numbers are wanted, found {x.fact}")
    return x.op(ComplexToInnerDim())


def _length(wire: GraphWiring) -> OutletId:
    given = wire.sizes(wire.input(1))
    wire.require_shape("length of the transform", given, (1,))
    return wire.number(given)


@tf_op(ROWS, "RFFT")
def rfft(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The frequencies of real numbers along the last axis, up to half of their number"""
    x = wire.tensor(0)
    if x.rank < 1:
        raise FactError(f"at least one axis is wanted, found {x.fact}")
    axis = x.rank - 1
    signal = of_length(wire, pairs_of_real(wire, x[..., None].outlet), axis, _length(wire))
    known = wire.dims(_length(wire))
    if known is not None:
        signal = wire.reshape(signal, (*x.shape[:-1], known[0], 2))
    return wire.op(InnerDimToComplex(), first_half(wire, wire.op(Fft(axis), signal), axis))


@tf_op(ROWS, "IRFFT")
def irfft(node: GraphNode, wire: GraphWiring) -> Wired:
    """The real numbers of whose frequencies the input has half"""
    pairs, length = _pairs(wire), _length(wire)
    axis = pairs.rank - 2
    signal = Wired(wire, real_inverse(wire, pairs.outlet, axis, length)).squeeze([axis + 1])
    known = wire.dims(length)
    if known is not None:
        signal = signal.reshape((*signal.shape[:-1], known[0]))
    return signal / Wired(wire, length).cast(signal.dtype)


@tf_op(ROWS, "FFT", "IFFT")
def fft(node: GraphNode, wire: GraphWiring) -> Wired:
    """The transform of complex numbers along the last axis, or the inverse one"""
    pairs = _pairs(wire)
    axis, inverse = pairs.rank - 2, node.op_type == "IFFT"
    found = pairs.op(Fft(axis, inverse))
    if inverse:
        found = found / found.with_outlet(wire.const(pairs.shape[axis])).cast(found.dtype)
    return found.op(InnerDimToComplex())


@tf_op(ROWS, "Complex")
def combined(node: GraphNode, wire: GraphWiring) -> Wired:
    """A complex number of its two parts"""
    a, b = (Wired(wire, x) for x in wire.ranks(wire.input(0), wire.input(1)))
    a, b = a.broadcast(b.shape), b.broadcast(a.shape)
    return a[..., None].op(TypedConcat(a.rank), b[..., None]).op(InnerDimToComplex())


@tf_op(ROWS, "Real", "Imag")
def part(node: GraphNode, wire: GraphWiring) -> Wired:
    """One part of complex numbers"""
    x = wire.tensor(0)
    if not x.dtype.is_complex():
        return x if node.op_type == "Real" else x * 0
    return _pairs(wire)[..., int(node.op_type == "Imag")]


@tf_op(ROWS, "ComplexAbs")
def magnitude(node: GraphNode, wire: GraphWiring) -> Wired:
    """The distance of complex numbers from 0"""
    pairs = _pairs(wire)
    return pairs.square().sum([pairs.rank - 1]).sqrt().squeeze([pairs.rank - 1])


@tf_op(ROWS, "Conj")
def conjugate(node: GraphNode, wire: GraphWiring) -> Wired:
    """Complex numbers with the other sign of their second part"""
    x = wire.tensor(0)
    if not x.dtype.is_complex():
        return x
    pairs = _pairs(wire)
    return pairs[..., :1].concat([-pairs[..., 1:]], pairs.rank - 1).op(InnerDimToComplex())
