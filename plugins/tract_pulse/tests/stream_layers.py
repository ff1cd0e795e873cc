"""Layers of random networks that change what a position holds, or join several branches, inputs and loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv
from tract_core.ops.cumsum import CumSum
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Sigmoid, Tanh
from tract_core.ops.fft import Stft
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.norm import RmsNorm
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec, SameUpper
from tract_core.ops.range import Range
from tract_core.ops.recurrent_wiring import RecurrentInputs, RecurrentOptions, wire_gru, wire_lstm
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.resize import Resize, Sampling, Scales
from tract_core.ops.slice import wire_slice
from tract_core.ops.softmax import Softmax
from tract_core.ops.wiring import wire_one

if TYPE_CHECKING:
    from stream_networks import Writer

    from tract_core.model.graph import OutletId

CHANNELS = 2


def product(net: Writer, x: OutletId, axes: str, *shape: int) -> OutletId:
    """``x`` times weights, as in einsum."""
    return net.add(EinSum(AxesMapping.parse(axes), DatumType.F32), x, net.weights(*shape))


def same(net: Writer, x: OutletId) -> OutletId:
    """A convolution that keeps the length, at some delay."""
    kernel, dilation = net.between(1, 4), net.between(1, 3)
    before = net.between(0, (kernel - 1) * dilation)
    padding = Explicit((before,), ((kernel - 1) * dilation - before,))
    op = Conv(PoolSpec(DataFormat.NCHW, (kernel,), padding, (dilation,), (1,)))
    return net.add(op, x, net.weights(CHANNELS, CHANNELS, kernel), net.weights(CHANNELS))


def branches(net: Writer) -> OutletId:
    """Two branches of different delays, one of them deeper, and perhaps the signal itself."""
    deep = net.add(Tanh(), same(net, same(net, net.x)))
    joined = net.add(net.random.choice([Add(), Mul()]), same(net, net.x), deep)
    return net.add(Add(), net.x, joined) if net.random.random() < 0.5 else joined


def stacked(net: Writer) -> OutletId:
    """Branches one above the other, and a mixture of their channels."""
    laid = net.add(TypedConcat(1), net.x, same(net, net.x), net.add(Sigmoid(), same(net, net.x)))
    return product(net, laid, "bcs,cd->bds", 3 * CHANNELS, CHANNELS)


def recurrent(net: Writer) -> OutletId:
    """A GRU or an LSTM on the positions."""
    steps = net.add(MoveAxis(2, 0), net.x)
    wire, gates = net.random.choice([(wire_gru, 3), (wire_lstm, 4)])
    w, r = (net.weights(1, gates * CHANNELS, CHANNELS) for _ in range(2))
    found = wire(net.model, net.name(), RecurrentOptions(), RecurrentInputs(steps, w, r))
    return net.add(MoveAxis(0, 2), net.add(RmAxis(1), found[0]))


def mixed(net: Writer) -> OutletId:
    """A matrix product per position."""
    return product(net, net.x, net.random.choice(["bcs,cd->bds", "bcs,dc->bds"]), CHANNELS, CHANNELS)


def interleaved(net: Writer) -> OutletId:
    """Channels laid one after the other as positions, a convolution over them, and back: blocks of two positions."""
    length = net.length()
    apart = net.add(MoveAxis(2, 1), net.x)  # [1, length, 2]
    flat = net.add(Reshape(1, (length, CHANNELS), (1, length * CHANNELS)), apart)
    kernel = net.between(1, 4)
    op = Conv(PoolSpec(DataFormat.NCHW, (kernel,), SameUpper(), (1,), (1,)))
    found = net.add(op, flat, net.weights(1, 1, kernel), net.weights(1))
    back = net.add(Reshape(1, (1, length * CHANNELS), (length, CHANNELS)), found)
    return net.add(MoveAxis(1, 2), back)


def positions(net: Writer) -> OutletId:
    """The numbers of the positions, stretched over channels, added in small steps."""
    length = net.length()
    first = net.between(-3, 3)
    start, step = (net.model.add_const(net.name(), np.array(value)) for value in (first, 2))
    end = net.model.add_const(net.name(), length * 2 + first)
    numbers = net.add(Range(length), start, net.add(Cast(DatumType.I64), end), step)
    numbers = net.add(Cast(DatumType.F32), numbers)
    shaped = net.add(MultiBroadcastTo((1, CHANNELS, length)), net.add(AddAxis(0), net.add(AddAxis(0), numbers)))
    small = net.add(Mul(), shaped, net.model.add_const(net.name(), np.full((1, 1, 1), 0.01, np.float32)))
    return net.add(Add(), net.x, small)


def late_sum(net: Writer) -> OutletId:
    """A running sum of what comes late."""
    small = net.add(Mul(), same(net, net.x), net.model.add_const(net.name(), np.full((1, 1, 1), 0.1, np.float32)))
    return net.add(CumSum(2, exclusive=net.random.random() < 0.5), small)


def frames(net: Writer) -> OutletId:
    """A Fourier transform of frames of the channels, taken for pairs, mixed back into channels."""
    frame, stride = net.between(1, 4), net.between(1, 3)
    net.unit *= stride
    pairs = net.add(Stft(1, frame, stride), net.add(MoveAxis(2, 1), net.x))
    return product(net, pairs, "bsfp,fpc->bcs", frame, 2, CHANNELS)


def other_layout(net: Writer) -> OutletId:
    """A convolution on channels that come last."""
    kernel = net.between(1, 3)
    op = Conv(PoolSpec(DataFormat.NHWC, (kernel,), SameUpper(), (1,), (1,)))
    found = net.add(op, net.add(MoveAxis(1, 2), net.x), net.weights(CHANNELS, CHANNELS, kernel), net.weights(CHANNELS))
    return net.add(MoveAxis(2, 1), found)


def normalised(net: Writer) -> OutletId:
    """Something over the channels of each position."""
    scaled = net.add(net.random.choice([RmsNorm(1, 0.1), Softmax((1,)), Tanh()]), net.x)
    peak = net.add(Reduce((1,), net.random.choice([Reducer.MAX, Reducer.SUM])), net.x)
    return net.add(Add(), scaled, peak)


def resized(net: Writer) -> OutletId:
    """More positions between those that there are."""
    sampling = Sampling(net.random.choice([Interpolator.LINEAR, Interpolator.CUBIC, Interpolator.NEAREST]))
    return net.add(Resize((2,), Scales((float(net.between(2, 3)),)), sampling), net.x)


def shifted(net: Writer) -> OutletId:
    """Moved behind by some positions, in front of which the first ones come twice."""
    by = net.between(1, 5)
    parts = [wire_slice(net.model, net.name(), net.x, 2, start=0, end=end) for end in (by, -by)]
    return net.add(TypedConcat(2), *parts)


def gained(net: Writer) -> OutletId:
    """Multiplied by an input that is whole."""
    if net.gain is None:
        net.gain = net.source("gain", f"1,{CHANNELS},1,f32")
    return net.add(Mul(), net.x, net.gain)


def joined_inputs(net: Writer) -> OutletId:
    """At the beginning: a second signal, some positions late, joins the first one."""
    other = same(net, net.source("other", f"1,{CHANNELS},S,f32"))
    return net.add(Add(), net.x, other)


def told(net: Writer) -> OutletId:
    """An output more."""
    net.more.append(wire_one(net.model, net.name(), Tanh(), net.x))
    return net.x
