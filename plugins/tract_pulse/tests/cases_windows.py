"""Windows that slide along the signal: convolutions, deconvolutions, pools, frames of a Fourier transform."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from stream_cases import StreamCase

from tract_core.data import Constant, DatumType
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.deconv import Deconv
from tract_core.ops.fft import Fft, Stft
from tract_core.ops.lrn import Lrn
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import (
    DataFormat,
    Explicit,
    ExplicitOnnxPool,
    Padding,
    PoolSpec,
    SameLower,
    SameUpper,
)

NCHW = DataFormat.NCHW


def spec(
    kernel: int | tuple[int, ...],
    padding: Padding | tuple[int, int] = (0, 0),
    stride: int | tuple[int, ...] = 1,
    dilation: int | tuple[int, ...] = 1,
    layout: DataFormat = NCHW,
) -> PoolSpec:
    """Windows of one axis where all is given as numbers; a pair is the explicit padding of one axis."""
    kernel = kernel if isinstance(kernel, tuple) else (kernel,)
    ones = (1,) * (len(kernel) - 1)
    strides = stride if isinstance(stride, tuple) else (stride, *ones)
    dilations = dilation if isinstance(dilation, tuple) else (dilation, *ones)
    if isinstance(padding, tuple):
        zeros = (0,) * (len(kernel) - 1)
        padding = Explicit((padding[0], *zeros), (padding[1], *zeros))
    return PoolSpec(layout, kernel, padding, dilations, strides)


def conv(pool: PoolSpec, channels: tuple[int, int] = (2, 3), group: int = 1) -> Any:
    """A convolution from so many channels to so many, with random weights."""

    def build(net: Any, x: Any) -> Any:
        into, out = channels
        kernel = net.weights(out, into // group, *pool.kernel_shape)
        return net(Conv(pool, group=group), x, kernel, net.weights(out))

    return build


def deconv(pool: PoolSpec, adjustment: int = 0, into: int = 2, group: int = 1, bias: int = 3) -> Any:
    """A deconvolution from two channels to three."""

    def build(net: Any, x: Any) -> Any:
        adjustments = (adjustment, *(0,) * (pool.rank - 1))
        op = Deconv(pool, group=group, adjustments=adjustments)
        return net(op, x, net.weights(3 * group, into // group, *pool.kernel_shape), net.weights(bias * group))

    return build


def both(first: Any, second: Any) -> Any:
    """One after the other."""
    return lambda net, x: second(net, first(net, x))


def pool(op: Any) -> Any:
    return lambda net, x: net(op, x)


def layouts() -> list[StreamCase]:
    """A convolution along each axis of two, in every layout."""
    found: list[StreamCase] = []
    facts = {
        DataFormat.NCHW: ("1,2,S,5,f32", "1,2,5,S,f32"),
        DataFormat.NHWC: ("1,S,5,2,f32", "1,5,S,2,f32"),
        DataFormat.CHW: ("2,S,5,f32", "2,5,S,f32"),
        DataFormat.HWC: ("S,5,2,f32", "5,S,2,f32"),
    }
    for layout, pair in facts.items():
        for axis, fact in enumerate(pair):
            pads = Explicit((1, 2), (1, 0))
            op = spec((3, 2), pads, stride=(1, 1), dilation=(1, 2), layout=layout)
            found.append(StreamCase(f"conv 2-D {layout.name} axis {axis}", conv(op), (1, 0)[axis], (fact,)))
    return found


def kernels() -> list[StreamCase]:
    """The orders of the axes of a kernel."""
    shapes = {KernelFormat.OIHW: (3, 2, 3), KernelFormat.HWIO: (3, 2, 3), KernelFormat.OHWI: (3, 3, 2)}

    def build(layout: KernelFormat) -> Any:
        op = Conv(spec(3, (1, 1)), kernel_format=layout)
        return lambda net, x: net(op, x, net.weights(*shapes[layout]), net.weights(3))

    return [StreamCase(f"conv kernel {layout.name}", build(layout), 1) for layout in shapes]


def quantised(zero_point: int, kernel_fact: tuple[int, ...] = (3, 2, 3)) -> Any:
    """A convolution of i8, whose padding is the zero point of the data."""

    def build(net: Any, x: Any) -> Any:
        kernel, bias = net.integers(-5, 5, kernel_fact, np.int8), net.integers(-5, 5, (3,), np.int32)
        zero = net.const(0, np.int8)
        scales = [net.const(scale, np.float32) for scale in (0.5, 0.25, 0.5)]
        parameters = [net.const(zero_point, np.int8), scales[0], zero, scales[1], zero, scales[2]]
        return net(Conv(spec(3, (1, 1)), q_output=DatumType.I8), x, kernel, bias, *parameters)

    return build


def integers(net: Any, x: Any) -> Any:
    """A convolution of integers."""
    return net(Conv(spec(3, (1, 1))), x, net.integers(-5, 5, (3, 2, 3), np.int32), net.integers(-5, 5, (3,), np.int32))


def stft(frame: int, stride: int, window: int | None = None) -> Any:
    def build(net: Any, x: Any) -> Any:
        weights = None if window is None else Constant(np.hanning(window + 2)[1:-1].astype(np.float32))
        return net(Stft(1, frame, stride, weights), x)

    return build


def u_net(net: Any, x: Any) -> Any:
    """Down to half as many positions, up again, and beside what was there: of an even length, as the model wants."""
    down = conv(spec(4, (1, 1), stride=2), (2, 3))(net, x)
    up = deconv(spec(4, (1, 1), stride=2), into=3)(net, conv(spec(3, (1, 1)), (3, 3))(net, down))
    return conv(spec(1), (5, 2))(net, net(TypedConcat(1), x, up))


PAIRS = "1,S,2,f32"
CASES = [
    StreamCase("u-net", u_net, 5, even=True),
    StreamCase("conv valid", conv(spec(3)), 2, least=3),
    StreamCase("conv causal", conv(spec(3, (2, 0))), 0),
    StreamCase("conv symmetric", conv(spec(3, (1, 1))), 1),
    StreamCase("conv ahead", conv(spec(3, (0, 2))), 2),
    StreamCase("conv more padding than the kernel", conv(spec(2, (4, 5))), 0),
    StreamCase("conv of one", conv(spec(1)), 0),
    StreamCase("conv dilated", conv(spec(3, (2, 2), dilation=2)), 2),
    StreamCase("conv stride 2", conv(spec(3, (1, 1), stride=2)), 0),
    StreamCase("conv stride 2 valid", conv(spec(4, stride=2)), 1, least=4),
    StreamCase("conv stride 4 beyond its kernel", conv(spec(2, stride=4)), 0, least=2),
    StreamCase("conv same upper", conv(spec(4, SameUpper())), 2),
    StreamCase("conv same lower", conv(spec(4, SameLower())), 1),
    StreamCase("conv same upper, stride 2", conv(spec(2, SameUpper(), stride=2)), 0),
    StreamCase("conv groups", conv(spec(3, (1, 1)), (4, 6), 2), 1, ("1,4,S,f32",)),
    StreamCase("conv depthwise", conv(spec(3, (1, 1)), (4, 4), 4), 1, ("1,4,S,f32",)),
    StreamCase("conv along the batch", conv(spec(3, (1, 1))), 0, ("S,2,6,f32",)),
    StreamCase(
        "conv of f16",
        lambda net, x: net(
            Conv(spec(3, (1, 1))), x, net.const(np.ones((1, 2, 3)), np.float16), net.const([0.5], np.float16)
        ),
        1,
        ("1,2,S,f16",),
        tolerance=1e-3,
    ),
    StreamCase("conv of integers", integers, 1, ("1,2,S,i32",)),
    StreamCase("conv quantised", quantised(0), 1, ("1,2,S,i8",)),
    StreamCase("conv quantised, zero point", quantised(3), 1, ("1,2,S,i8",)),
    StreamCase("conv conv", both(conv(spec(3, (1, 1))), conv(spec(3, (2, 2), 1, 2), (3, 2))), 3),
    StreamCase("conv strided twice", both(conv(spec(3, (1, 1), 2)), conv(spec(3, (1, 1), 2), (3, 2))), 0),
    StreamCase("conv strided twice, valid", both(conv(spec(3, stride=2)), conv(spec(3, stride=2), (3, 2))), 1, least=7),
    StreamCase(
        "conv transposed in and out", conv(spec((2, 3), Explicit((0, 1), (0, 1)))), 1, ("B,2,4,S,f32",), sizes={"B": 2}
    ),
    *layouts(),
    *kernels(),
    StreamCase("deconv valid", deconv(spec(3)), 0, least=1),
    StreamCase("deconv cut", deconv(spec(3, (1, 1))), 1, least=1),
    StreamCase("deconv stride 2", deconv(spec(3, stride=2)), 0, least=1),
    StreamCase("deconv stride 2, cut", deconv(spec(4, (1, 1), 2)), 1, least=1),
    StreamCase("deconv stride beyond its kernel", deconv(spec(2, stride=4)), 0, least=1),
    StreamCase("deconv adjusted", deconv(spec(3, (1, 1), 2), 1), 1, least=1),
    StreamCase("deconv dilated", deconv(spec(3, (2, 2), 1, 2)), 2, least=1),
    StreamCase("deconv same upper", deconv(spec(3, SameUpper(), 2)), 0, least=1),
    StreamCase("deconv same lower", deconv(spec(3, SameLower(), 2)), 1, least=1),
    StreamCase("deconv groups", deconv(spec(3, (1, 1)), into=4, group=2, bias=3), 1, ("1,4,S,f32",), least=1),
    StreamCase("deconv along the batch", deconv(spec(3, (1, 1))), 0, ("S,2,6,f32",)),
    StreamCase("deconv 2-D", deconv(spec((3, 2), Explicit((1, 0), (1, 1)), (2, 3))), 1, ("1,2,S,4,f32",), least=1),
    StreamCase("conv, deconv stride 2", both(conv(spec(3, (1, 1))), deconv(spec(2, stride=2), into=3)), 2, least=1),
    StreamCase("conv k5, deconv stride 2", both(conv(spec(5, (2, 2))), deconv(spec(3, stride=2), into=3)), 4, least=1),
    StreamCase(
        "conv stride 2, deconv stride 2", both(conv(spec(3, (1, 1), 2)), deconv(spec(4, (1, 1), 2), into=3)), 1, least=1
    ),
    StreamCase("deconv, conv", both(deconv(spec(4, (1, 1), 2)), conv(spec(3, (1, 1)), (3, 2))), 2, least=1),
    StreamCase("max pool", pool(MaxPool(spec(3, (1, 1)))), 1, least=1),
    StreamCase("max pool stride 2", pool(MaxPool(spec(2, stride=2))), 0, least=2),
    StreamCase("max pool NHWC", pool(MaxPool(spec(3, (1, 1), layout=DataFormat.NHWC))), 1, ("1,S,2,f32",), least=1),
    StreamCase("max pool of integers", pool(MaxPool(spec(3, (1, 1)))), 1, ("1,2,S,i32",), least=1),
    StreamCase("max pool ceil", pool(MaxPool(spec(3, ExplicitOnnxPool((1,), (1,), True), 2))), 0, least=1),
    StreamCase("max pool on another axis", pool(MaxPool(spec((1, 2), stride=(1, 2)))), 0, ("1,2,S,4,f32",)),
    StreamCase("mean pool", pool(SumPool(spec(3))), 2, least=3),
    StreamCase("mean pool, padding left out", pool(SumPool(spec(3, ExplicitOnnxPool((1,), (1,), False)))), 1, least=1),
    StreamCase("mean pool, padding counted", pool(SumPool(spec(3, (1, 1)), count_include_pad=True)), 1, least=1),
    StreamCase("sum pool", pool(SumPool(spec(3, (1, 1)), normalize=False)), 1, least=1),
    StreamCase("mean pool along channels' batch", pool(SumPool(spec(3, (1, 1)))), 0, ("S,2,6,f32",)),
    StreamCase("stft", stft(4, 2), 1, (PAIRS,), least=4),
    StreamCase("stft, a window", stft(4, 2, 3), 1, (PAIRS,), least=4),
    StreamCase("stft, frames apart", stft(2, 4), 0, (PAIRS,), least=2),
    StreamCase("stft, frames as they come", stft(4, 4), 0, (PAIRS,), least=4),
    StreamCase("stft on another axis", lambda net, x: net(Stft(1, 4, 2), x), 0, ("S,8,2,f32",)),
    StreamCase("fft on another axis", lambda net, x: net(Fft(1), x), 0, ("S,8,2,f32",)),
    StreamCase("inverse fft on another axis", lambda net, x: net(Fft(0, True), x), 0, ("8,S,2,f32",)),
    StreamCase("lrn on another axis", lambda net, x: net(Lrn(3), x), 0, ("1,5,S,f32",)),
]
CASES += [
    replace(case, name=f"{case.name}, pulse 8", pulse=8)
    for case in CASES
    if case.name in ("conv symmetric", "conv stride 2", "conv, deconv stride 2", "stft")
]
