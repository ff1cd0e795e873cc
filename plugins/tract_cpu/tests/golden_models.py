"""Small models, each for decisions of the compiler that are seen in the text of its program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import symbol
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Div, Max, Mul, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.cumsum import CumSum
from tract_core.ops.deconv import Deconv
from tract_core.ops.elementwise import Exp, GeluExact, Sigmoid, Tanh
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.non_zero import NonZero
from tract_core.ops.norm import wire_layer_norm
from tract_core.ops.pad import Pad, PadConstant, PadReflect
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, PoolSpec, SameUpper, Valid
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.resize import Resize, Sampling, Scales
from tract_core.ops.slice import wire_slice
from tract_core.ops.softmax import Softmax
from tract_core.ops.topk import Topk
from tract_core.ops.unique import Unique
from tract_core.plugins import default_registry
from tract_core.testing.case import CASES

GOLDEN: Final[dict[str, Callable[[], TypedModel]]] = {}
"""By the name of the file that holds the text."""


def golden(*facts: str) -> Callable[[Callable[..., Sequence[OutletId]]], None]:
    """Declare a model of inputs with these facts, by what it gives for them."""

    def declare(build: Callable[..., Sequence[OutletId]]) -> None:
        def make() -> TypedModel:
            model = TypedModel()
            inputs = [
                model.add_source(f"x{place}", parse_typed_fact(fact, model.symbols)) for place, fact in enumerate(facts)
            ]
            model.set_outputs(build(NodeWiring(model, "n"), *inputs))
            return model.declutter()

        GOLDEN[build.__name__] = make

    return declare


def of_case(name: str, family: str) -> None:
    """Declare the model of a case of the core, with its symbols."""
    (case,) = [one for one in default_registry()[CASES].find(family) or () if one.name == name]
    GOLDEN[family] = lambda: case.model(symbolic=True).declutter()


def weights(*shape: int, kind: Any = np.float32) -> Any:
    """Numbers that are all different, the same in every run."""
    return (np.arange(np.prod(shape)).reshape(shape) % 97 / 97 - 0.5).astype(kind)


def window(*kernel: int, valid: bool = False, **others: Any) -> PoolSpec:
    """Of images, channels first."""
    return PoolSpec(DataFormat.NCHW, kernel, Valid() if valid else SameUpper(), **others)


def conv(w: NodeWiring, x: OutletId, channels: int, *kernel: int, group: int = 1, **others: Any) -> OutletId:
    """A convolution with weights and a bias."""
    inputs = int(w.shape(x)[1]) // group
    return w.op(
        Conv(window(*kernel, **others), group=group),
        x,
        w.const(weights(channels, inputs, *kernel)),
        w.const(weights(channels)),
    )


def relu(w: NodeWiring, x: OutletId) -> OutletId:
    """Nothing below zero."""
    return w.binary(Max(), x, w.scalar(0.0, x))


def linear(w: NodeWiring, x: OutletId, size: int) -> OutletId:
    """x @ weights + bias"""
    from tract_core.ops.einsum import wire_matmul

    found = w.through(wire_matmul, x, w.const(weights(int(w.shape(x)[-1]), size)))
    return w.binary(Add(), found, w.const(weights(size)))


@golden("B,8,f32", "B,8,f32")
def elements(w: NodeWiring, x: OutletId, y: OutletId) -> Sequence[OutletId]:
    """One kernel for a chain, its side of another size, and two results."""
    total = w.binary(Add(), x, y)
    return [w.op(Tanh(), w.binary(Mul(), total, w.const(weights(8)))), w.op(Exp(), total)]


@golden("B,5,14,8,f32")
def channels_last(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Nothing is copied: a product writes inside of what is padded, which a convolution reads where it lies."""
    from tract_core.model.axes import AxesMapping
    from tract_core.ops.einsum import EinSum

    linear = w.op(EinSum(AxesMapping.parse("nhwi,ic->nhwc"), DatumType.F32), x, w.const(weights(8, 32)))
    wide = w.op(Pad(((0, 0), (1, 1), (1, 1), (0, 0)), PadConstant(Constant(np.float32(0.5)))), linear)
    each = Conv(PoolSpec(DataFormat.NHWC, (3, 3), Valid()), KernelFormat.HWIO, 32)
    return [relu(w, w.op(each, wide, w.const(weights(3, 3, 1, 32)), w.const(weights(32))))]


@golden("B,3,12,12,f32")
def convolution(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """The first one of a network: few channels, and what follows in its kernel."""
    return [relu(w, conv(w, x, 16, 3, 3, strides=(2, 2)))]


@golden("1,16,20,20,f32")
def convolutions(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """In blocks of channels from one to the next, with a residual sum."""
    first = relu(w, conv(w, x, 32, 3, 3))
    second = conv(w, relu(w, conv(w, first, 32, 1, 1)), 32, 3, 3)
    return [relu(w, w.binary(Add(), first, second))]


@golden("1,16,S,S,f32")
def depthwise(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Channels of their own, then products of them, at any size."""
    return [relu(w, conv(w, relu(w, conv(w, x, 16, 3, 3, group=16)), 24, 1, 1))]


@golden("1,8,100,f32")
def signal(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """A convolution along one axis, gated."""
    inside = conv(w, x, 16, 5, valid=True, dilations=(2,))
    halves = [w.through(wire_slice, inside, 1, start=start, end=start + 8) for start in (0, 8)]
    return [w.binary(Mul(), w.op(Tanh(), halves[0]), w.op(Sigmoid(), halves[1]))]


@golden("1,4,9,9,f32")
def upsampled(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """A transposed convolution, and a resize."""
    pool = window(2, 2, strides=(2, 2))
    larger = w.op(Deconv(pool), x, w.const(weights(8, 4, 2, 2)), w.const(weights(8)))
    return [larger, w.op(Resize((2, 3), Scales((2.0, 2.0)), Sampling()), x)]


@golden("1,16,16,16,f32")
def pooled(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Windows, and the mean of whole channels."""
    small = w.op(MaxPool(window(2, 2, strides=(2, 2))), conv(w, x, 16, 3, 3))
    return [w.op(SumPool(window(8, 8, valid=True)), small)]


@golden("1,8,6,6,f32", "1,8,6,6,f32")
def concatenated(w: NodeWiring, x: OutletId, y: OutletId) -> Sequence[OutletId]:
    """Results that are written where they are put together."""
    parts = [relu(w, conv(w, one, 16, 3, 3)) for one in (x, y)]
    return [conv(w, w.op(TypedConcat(1), *parts), 8, 1, 1)]


@golden("1,4,6,6,f32")
def padded(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """A mirrored border in front of a convolution."""
    return [conv(w, w.op(Pad(((0, 0), (0, 0), (1, 1), (1, 1)), PadReflect()), x), 8, 3, 3, valid=True)]


@golden("B,32,f32")
def perceptron(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Products with what follows, and a softmax."""
    return [w.op(Softmax((1,)), linear(w, w.op(GeluExact(), linear(w, x, 64)), 10))]


@golden("S,32,f32")
def normalised(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """The norm of a transformer, and its residual product."""
    norm = w.through(wire_layer_norm, x, 1, eps=1e-5, scale=w.const(weights(32)), bias=w.const(weights(32)))
    return [w.binary(Add(), x, linear(w, norm, 32))]


@golden("1,4,S,16,f32", "1,4,T,16,f32", "1,4,T,16,f32")
def attention(w: NodeWiring, q: OutletId, k: OutletId, v: OutletId) -> Sequence[OutletId]:
    """Scores that are nowhere in memory as a whole."""
    from tract_core.ops.einsum import wire_matmul

    scores = w.through(wire_matmul, q, w.transpose(k, [0, 1, 3, 2]))
    shares = w.op(Softmax((3,)), w.binary(Mul(), scores, w.scalar(0.25, scores)))
    return [w.through(wire_matmul, shares, v)]


@golden("B,S,24,f32")
def heads(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Axes that are cut and moved without copies, where a product can read them so."""
    from tract_core.ops.einsum import wire_matmul

    split = w.transpose(w.reshape(linear(w, x, 24), [symbol("B"), symbol("S"), 4, 6]), [0, 2, 1, 3])
    return [w.through(wire_matmul, split, w.transpose(split, [0, 1, 3, 2]))]


@golden("B,64,f32")
def quantised(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Products of integers between quantisations."""
    scale, zero = w.const(np.array(0.05, np.float32)), w.const(np.array(3, np.uint8))
    steps = w.op(DequantizeLinear(DatumType.F32), w.op(QuantizeLinear(DatumType.U8), x, scale, zero), scale, zero)
    inside = (weights(64, 32) * 200).astype(np.int8)
    matrix = w.op(
        DequantizeLinear(DatumType.F32),
        w.const(inside),
        w.const(np.array(0.01, np.float32)),
        w.const(np.array(0, np.int8)),
    )
    from tract_core.ops.einsum import wire_matmul

    return [relu(w, w.through(wire_matmul, steps, matrix))]


@golden("B,32,f16")
def half(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Half floats, which are computed in f32."""
    from tract_core.ops.einsum import wire_matmul

    return [w.op(Sigmoid(), w.through(wire_matmul, x, w.const(weights(32, 16, kind=np.float16))))]


@golden("S,16,f32", "N,i64")
def gathered(w: NodeWiring, x: OutletId, rows: OutletId) -> Sequence[OutletId]:
    """Rows by number, which may be wrong: the kernel refuses."""
    return [w.binary(Mul(), w.op(Gather(0), x, rows), w.const(weights(16)))]


@golden("S,f32")
def found_in_the_middle(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """A size that only the run tells, and native code behind it."""
    places = w.op(NonZero(w.symbol("found")), x)
    return [w.op(Exp(), w.cast(places, DatumType.F32))]


@golden("S,f32")
def told_by_the_host(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """A size that a node tells which is left to the host, and native code behind it."""
    values = w.ops(Unique(None, True, w.symbol("found")), x)[0]
    return [w.op(Exp(), values)]


@golden("B,20,f32")
def best(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """The largest elements and their places, one of them on other elements."""
    values, places = w.ops(Topk(1, True, 3), x, w.const(np.array(3)))
    return [w.op(Exp(), values), places]


@golden("4,S,f32")
def running(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Running sums, and the mean of what is there."""
    sums = w.op(CumSum(1), x)
    total = w.op(Reduce((1,), Reducer.SUM), x)
    return [w.binary(Div(), sums, total)]


@golden("B,6,8,f32")
def views(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Nothing is computed but the last: slices and other orders of axes are views."""
    part = w.through(wire_slice, w.transpose(x, [0, 2, 1]), 1, start=2, end=6)
    return [w.binary(Sub(), part, w.through(wire_slice, part, 1, start=0, end=1))]


@golden("3,f32")
def twice(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """One tensor as two outputs, one of them in another shape."""
    found = w.op(Exp(), x)
    return [found, w.reshape(found, [3, 1])]


for case, of in (
    ("Scan-forward", "scan"),
    ("Loop-counted", "loop"),
    ("IfThenElse-then", "if_then_else"),
    ("LstmEpilogue-f32", "recurrent"),
    ("SubmodelOp", "submodel"),
    ("Fft-1-B,S,3,2,f32", "fft"),
):
    of_case(case, of)
