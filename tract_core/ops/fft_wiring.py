"""What Fourier transforms of frontends have in common: pairs of real numbers, other lengths, halves, and the way back.

A complex number is a pair of real ones on a last axis of size 2, as in `tract_core.ops.fft`.
"""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Max, Mul, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.fft import Fft
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.pad import PadConstant
from tract_core.ops.slice import Slice, wire_dyn_slice, wire_slice
from tract_core.ops.wiring_dyn import wire_dyn_pad, wire_pad


def _zero(wire: NodeWiring, x: OutletId) -> PadConstant:
    return PadConstant(Constant(np.zeros((), wire.dtype(x).numpy)))


def pairs_of_real(wire: NodeWiring, x: OutletId) -> OutletId:
    """Real numbers on a last axis of size 1, with an imaginary part of 0."""
    pads = [*((0, 0) for _ in range(wire.rank(x) - 1)), (0, 1)]
    return wire.through(wire_pad, x, pads, _zero(wire, x))


def of_length(wire: NodeWiring, x: OutletId, axis: int, length: OutletId) -> OutletId:
    """``x`` with zeros behind it, or its end cut off, so that its axis has ``length`` (i64, of rank 0) elements."""
    missing = wire.op(Max(), wire.op(Sub(), length, wire.const(wire.shape(x)[axis])), wire.const(0))
    behind = [wire.const((0,)), wire.unsqueeze(missing, [0])]
    pads = [behind[slot == axis + wire.rank(x)] for slot in range(2 * wire.rank(x))]
    padded = wire.through(wire_dyn_pad, x, wire.op(TypedConcat(0), *pads), _zero(wire, x))
    return wire.through(wire_dyn_slice, padded, axis, start=wire.const(0), end=length)


def first_half(wire: NodeWiring, x: OutletId, axis: int) -> OutletId:
    """The frequencies up to half of their number; the others are their mirror image when the signal is real."""
    return wire.op(Slice(axis, 0, wire.shape(x)[axis] // 2 + 1), x)


def real_inverse(wire: NodeWiring, x: OutletId, axis: int, length: OutletId) -> OutletId:
    """The real signal of ``length`` whose first half of the frequencies is ``x``, times its length; a last axis of 1.

    The other half is the mirror image of the first one, conjugated.
    """
    half = wire.op(Add(), wire.op(Div(), length, wire.const(2)), wire.const(1))
    first = of_length(wire, x, axis, half)
    # Frequency 0, and half of an even length, are their own mirror images.
    mirrored = wire.op(Div(), wire.op(Sub(), length, wire.const(1)), wire.const(2))
    end = wire.op(Add(), mirrored, wire.const(1))
    inner = wire.through(wire_dyn_slice, first, axis, start=wire.const(1), end=end)
    inner = wire.through(wire_slice, inner, axis, start=None, end=None, step=-1)
    conjugate = wire.const(np.array([1, -1], wire.dtype(x).numpy))
    full = wire.op(TypedConcat(axis), first, wire.binary(Mul(), inner, conjugate))
    signal = wire.op(Fft(axis, inverse=True), full)
    return wire.op(Slice(wire.rank(x) - 1, 0, 1), signal)
