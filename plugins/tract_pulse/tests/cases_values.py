"""What computes each position from the same position: element by element, over other axes, from several inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases_layout import after_conv, op
from cases_windows import conv, spec
from stream_cases import StreamCase

from tract_core.data import Constant, DatumType
from tract_core.dims import symbol
from tract_core.model.axes import AxesMapping
from tract_core.ops.binary import Add, Lt, Mul, Sub
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import EinSum, wire_matmul
from tract_core.ops.elementwise import Exp, Tanh
from tract_core.ops.iff import Iff
from tract_core.ops.norm import RmsNorm, wire_layer_norm
from tract_core.ops.one_hot import OneHot
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.slice import wire_slice
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.ops.topk import Topk

S = symbol("S")


def einsum(axes: str, *shape: int, stream_first: bool = True) -> Any:
    """A product with weights."""

    def build(net: Any, x: Any) -> Any:
        inputs = [x, net.weights(*shape)]
        found = EinSum(AxesMapping.parse(axes), DatumType.F32)
        return net(found, *(inputs if stream_first else inputs[::-1]))

    return build


def matmul(net: Any, x: Any) -> Any:
    return net.wire(wire_matmul, x, net.weights(3, 4))


def per_position(net: Any, x: Any, y: Any) -> Any:
    """A matrix product for each position of two streams, of which one is late."""
    late = net.wire(wire_slice, y, 0, start=1, end=None)
    early = net.wire(wire_slice, x, 0, start=0, end=-1)
    return net.wire(wire_matmul, early, late)


def topk(net: Any, x: Any) -> Any:
    return list(net(Topk(1, True, 2), x, net.const(2, np.int64)))


def quantised(net: Any, x: Any) -> Any:
    scale, zero = net.const(0.1, np.float32), net.const(3, np.int8)
    return net(DequantizeLinear(DatumType.F32), net(QuantizeLinear(DatumType.I8), x, scale, zero), scale, zero)


def quantised_product(net: Any, x: Any) -> Any:
    axes = AxesMapping.parse("sk,kn,n,,,,,,->sn")
    scales = [net.const(scale, np.float32) for scale in (0.5, 0.25, 0.5)]
    zeros = [net.const(zero, np.int8) for zero in (1, 2, 3)]
    parameters = [one for pair in zip(zeros, scales, strict=True) for one in pair]
    weights, bias = net.integers(-5, 5, (3, 4), np.int8), net.integers(-9, 9, (4,), np.int32)
    return net(EinSum(axes, DatumType.I32, DatumType.I8), x, weights, bias, *parameters)


def where(net: Any, x: Any, y: Any) -> Any:
    return net(Iff(), net(Lt(), x, y), x, y)


def three_delays(net: Any, x: Any) -> Any:
    """Branches that are 0, 1 and 2 positions late."""
    one, two = conv(spec(3, (1, 1)), (2, 2))(net, x), conv(spec(5, (2, 2)), (2, 2))(net, x)
    return net(Add(), net(Mul(), x, one), two)


def several_outputs(net: Any, x: Any) -> Any:
    """Outputs of different delays, and of different rates."""
    return [net(Tanh(), x), conv(spec(3, (1, 1)), (2, 2))(net, x), conv(spec(2, (1, 0), 2), (2, 2))(net, x)]


def with_whole_output(net: Any, x: Any) -> Any:
    """An output that does not depend on the signal."""
    return [x, net(Exp(), net.weights(2, 2))]


def whole_input(net: Any, x: Any, gain: Any) -> Any:
    return net(Mul(), conv(spec(3, (1, 1)), (2, 2))(net, x), gain)


def whole_condition(net: Any, x: Any, which: Any) -> Any:
    """A whole input that is computed with before it meets the stream."""
    return net(Add(), x, net(Tanh(), net(Mul(), which, which)))


def two_rates(net: Any, x: Any, y: Any) -> Any:
    """An input with two positions for each one of the other."""
    return net(Add(), x, conv(spec(2, (0, 0), 2), (2, 2))(net, y))


def scattered(net: Any, x: Any) -> Any:
    indices = net(MultiBroadcastTo((1, 1, S)), net.const([[[1]]], np.int64))
    return net(ScatterElements(1), x, indices, net(MultiBroadcastTo((1, 1, S)), net.weights(1, 1, 1)))


def layer_norm(net: Any, x: Any) -> Any:
    return net.wire(wire_layer_norm, x, 2, eps=1e-5)


PLAIN = "1,2,S,f32"
CASES = [
    StreamCase("element-wise", op(Tanh()), 0),
    StreamCase("element-wise after a delay", after_conv(op(Exp())), 1, least=1, tolerance=1e-4),
    StreamCase("cast", op(Cast(DatumType.I32)), 0),
    StreamCase("two inputs", where, 0, (PLAIN, PLAIN)),
    StreamCase("three delays", three_delays, 2, least=1),
    StreamCase("several outputs", several_outputs, (0, 1, 0), least=1),
    StreamCase("an output that is whole", with_whole_output, (0, None)),
    StreamCase("a whole input", whole_input, 1, (PLAIN, "1,2,1,f32"), least=1),
    StreamCase("a whole input, computed with", whole_condition, 0, (PLAIN, "1,2,1,f32")),
    StreamCase("inputs of two rates", two_rates, 0, (PLAIN, "1,2,2*S,f32"), least=1),
    StreamCase("sum over channels", op(Reduce((1,), Reducer.SUM)), 0),
    StreamCase("maximum over batch and channels", op(Reduce((0, 1), Reducer.MAX)), 0),
    StreamCase("argmax over channels", op(Reduce((1,), Reducer.ARG_MAX_FIRST)), 0, ("1,5,S,f32",)),
    StreamCase("softmax over channels", op(Softmax((1,))), 0),
    StreamCase("log-softmax over channels", op(LogSoftmax((0, 1))), 0),
    StreamCase("rms norm over channels", op(RmsNorm(1, 1e-5)), 0),
    StreamCase("layer norm over channels", layer_norm, 0, ("1,S,3,f32",)),
    StreamCase("top-k over channels", topk, (0, 0), ("1,5,S,f32",)),
    StreamCase("matmul", matmul, 0, ("S,3,f32",)),
    StreamCase("matmul, weights first", einsum("nk,ks->ns", 3, 2, stream_first=False), 0, ("2,S,f32",)),
    StreamCase("einsum that transposes", einsum("bks,kn->sbn", 2, 5), 0),
    StreamCase("einsum along the batch", einsum("sij,jk->sik", 4, 5), 0, ("S,3,4,f32",)),
    StreamCase(
        "einsum of two streams",
        lambda net, x, y: net(EinSum(AxesMapping.parse("bcs,bds->bcds"), DatumType.F32), x, y),
        0,
        (PLAIN, "1,3,S,f32"),
    ),
    StreamCase("a matrix product per position", per_position, 1, ("S,3,4,f32", "S,4,2,f32"), least=1),
    StreamCase("quantised and back", quantised, 0),
    StreamCase("quantised matrix product", quantised_product, 0, ("S,3,i8",)),
    StreamCase(
        "one-hot",
        op(OneHot(1, 5, Constant(np.float32(0).reshape(())), Constant(np.float32(1).reshape(())))),
        0,
        ("S,i64",),
    ),
    StreamCase("scatter on another axis", scattered, 0),
    StreamCase("a stream along 2*S+1", after_conv(op(Tanh())), 1, ("1,2,2*S+1,f32",)),
    StreamCase("a suffix behind S+3", lambda net, x: net(TypedConcat(2), x, net.weights(1, 2, 3)), 0, ("1,2,S+3,f32",)),
    StreamCase("a stream along S+3", conv(spec(3, (1, 1))), 1, ("1,2,S+3,f32",)),
    StreamCase(
        "other symbols", after_conv(op(Exp())), 1, ("B,2,T,f32",), symbol="T", sizes={"B": 3}, least=1, tolerance=1e-4
    ),
    StreamCase(
        "other symbols, concat across",
        lambda net, x, y: net(TypedConcat(1), x, net(Sub(), x, y)),
        0,
        ("B,2,T,f32", "B,2,T,f32"),
        symbol="T",
        sizes={"B": 2},
    ),
]
