"""Small models whose kernels use what instruction sets differ in, each with the sizes that it is run at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
from golden_models import conv, linear, relu, window

from tract_core.data import Constant, DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Max, Mul, Pow
from tract_core.ops.cast import Cast
from tract_core.ops.conv import Conv
from tract_core.ops.cumsum import CumSum
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Ceil, Cos, Erf, Exp, Floor, GeluExact, Ln, RoundHalfToEven, Sigmoid, Tanh
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.norm import wire_layer_norm
from tract_core.ops.pool import MaxPool
from tract_core.ops.quantize import DequantizeLinear, LookupTable, QuantizeLinear
from tract_core.ops.recurrent_wiring import RecurrentInputs, RecurrentOptions, wire_lstm
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.ops.topk import Topk

Array = np.ndarray[Any, Any]
Build = Callable[..., Sequence[OutletId]]
Sizes = Sequence[Mapping[str, int]]


@dataclass(frozen=True)
class Example:
    """``facts``: of the inputs. ``near``: how far floats may be off, in parts of the number and of 1.

    ``has_special``: whether some elements are infinite, no number, subnormal, or a zero with a sign.
    """

    facts: Sequence[str]
    build: Build
    sizes: Sizes
    near: float
    has_special: bool

    def model(self) -> TypedModel:
        model = TypedModel()
        inputs = [
            model.add_source(f"x{place}", parse_typed_fact(fact, model.symbols))
            for place, fact in enumerate(self.facts)
        ]
        model.set_outputs(self.build(NodeWiring(model, "n"), *inputs))
        return model.declutter()

    def inputs(self, sizes: Mapping[str, int]) -> list[Array]:
        """Arrays for these sizes, the same in every run."""
        rng = np.random.default_rng(0)
        return [self._array(fact.split(","), sizes, rng) for fact in self.facts]

    def _array(self, fact: Sequence[str], sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
        shape = tuple(sizes[one] if one in sizes else int(one) for one in fact[:-1])
        dtype = np.dtype(DatumType[fact[-1].upper()].numpy)
        if dtype.kind in "iu":
            return at_ends(dtype, shape, rng)
        found = rng.standard_normal(shape) * (4 if self.has_special else 1)
        if self.has_special:
            flat, special = found.reshape(-1), [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 90.0, -90.0]
            flat[: len(special)] = special[: flat.size]
        return found.astype(dtype)


def at_ends(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Integers, every other one at an end of the type."""
    ends = np.iinfo(dtype)
    found = rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    found.reshape(-1)[::4], found.reshape(-1)[2::4] = ends.min, ends.max
    return found


EXAMPLES: Final[dict[str, Example]] = {}


def of(
    name: str, build: Build, *facts: str, near: float = 0.0, has_special: bool = False, **sizes: Sequence[int]
) -> None:
    """Declare an example. ``sizes``: the values of each symbol, one for every run."""
    runs = [dict(zip(sizes, row, strict=True)) for row in zip(*sizes.values(), strict=True)]
    EXAMPLES[name] = Example(facts, build, runs, near, has_special)


def by_weights(kind: str, *shape: int) -> Array:
    """Constants, the same in every run."""
    dtype, rng = np.dtype(DatumType[kind.upper()].numpy), np.random.default_rng(1)
    return at_ends(dtype, shape, rng) if dtype.kind in "iu" else rng.standard_normal(shape).astype(dtype)


def summed(mapping: str, acc: DatumType) -> Build:
    """Products that are summed."""
    return lambda w, *factors: [w.op(EinSum(AxesMapping.parse(mapping), acc), *factors)]


F32, I32 = DatumType.F32, DatumType.I32
NEAR = {"f32": 1e-5, "f64": 1e-13, "f16": 4e-3, "bf16": 3e-2}
"""Of results that were rounded to a type, from some tens of products or fewer, each of about 1."""
ROWS, DEPTHS, COLUMNS = (0, 2, 3, 1, 2, 5, 15), (3, 0, 2, 1, 2, 7, 33), (2, 3, 0, 1, 2, 33, 70)
BYTES = [*product(("u8", "i8"), repeat=2), ("i16", "i16"), ("u8", "i16")]
PAIRS = [*((kind, kind, NEAR[kind], F32 if kind != "f64" else DatumType.F64) for kind in NEAR)]
PAIRS += [(left, right, 0.0, I32) for left, right in BYTES]

for left, right, near, acc in PAIRS:
    facts = f"M,K,{left}", f"K,N,{right}"
    of(f"product of {left} and {right}", summed("mk,kn->mn", acc), *facts, near=near, M=ROWS, K=DEPTHS, N=COLUMNS)


def no_larger(weights: Array, most: int | None) -> Array:
    return weights if most is None else weights.clip(-most, most)


def by_constants(kind: str, acc: DatumType, most: int | None = None) -> Build:
    """Products with weights that are packed when the model is prepared, and of which some are turned."""
    matrix = no_larger(by_weights(kind, 33, 18), most)

    def build(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
        first = w.op(EinSum(AxesMapping.parse("mk,kn->mn"), acc), x, w.const(matrix))
        return [first, w.op(EinSum(AxesMapping.parse("nk,mk->nm"), acc), w.const(matrix.T), x)]

    return build


PACKED = [*zip(NEAR, NEAR, strict=True), *BYTES[:4]]
for kind, other, near, acc in [one for one in PAIRS if one[:2] in PACKED]:
    of(f"{kind} by constants of {other}", by_constants(other, acc), f"M,33,{kind}", near=near, M=(0, 1, 2, 17))


SMALL = [(data, most) for data in ("u8", "i8") for most in (64, 127)]
"""Bytes, and the largest of the weights that they are multiplied with: pairs of products may fit 16 bits."""

for kind, most in SMALL:
    small = by_constants("i8", I32, most)
    of(f"{kind} by constants up to {most}", small, f"M,33,{kind}", near=0.0, M=(0, 1, 2, 17))


def convolved(
    kind: str, *kernel: int, group: int = 1, inputs: int = 21, most: int | None = None, **others: Any
) -> Build:
    """A convolution of images by constants."""

    def build(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
        op = Conv(window(*kernel, **others), group=group)
        bias, shape = "i32" if kind[0] in "iu" else kind, (inputs, inputs // group, *kernel)
        matrix = no_larger(by_weights(kind, *shape), most)
        return [w.op(op, x, w.const(matrix), w.const(by_weights(bias, inputs)))]

    return build


BATCHES, SIDES = (0, 1, 2, 1), (3, 1, 5, 12)
CONVS = [("f32", "f32"), ("f16", "f16"), ("bf16", "bf16"), *BYTES[:4]]
for kind, other in CONVS:
    near = 30 * NEAR.get(kind, 0.0)  # sums of hundreds of products
    of(f"convolution of {kind} by {other}", convolved(other, 3, 3), f"B,21,S,S,{kind}", near=near, B=BATCHES, S=SIDES)
for kind, most in SMALL:
    small = convolved("i8", 3, 3, most=most)
    of(f"convolution of {kind} up to {most}", small, f"B,21,S,S,{kind}", near=0.0, B=BATCHES, S=SIDES)
for kind, other in (CONVS[0], CONVS[2], CONVS[4]):
    depthwise = convolved(other, 3, 3, group=18, inputs=18)
    of(f"channels of {kind} alone", depthwise, f"B,18,9,9,{kind}", near=3 * NEAR.get(kind, 0.0), B=(0, 1, 3))
for kind, other in (CONVS[2], CONVS[4]):
    near = 60 * NEAR.get(kind, 0.0)
    mixed = convolved(other, 3, 3, inputs=64)
    of(f"convolution of many channels of {kind}", mixed, f"B,64,S,S,{kind}", near=near, B=BATCHES, S=SIDES)
of("strides of f32", convolved("f32", 2, 5, strides=(2, 1)), "B,21,9,7,f32", near=2e-4, B=(0, 1, 2))


def attended(w: NodeWiring, q: OutletId, k: OutletId, v: OutletId) -> Sequence[OutletId]:
    scores = w.op(EinSum(AxesMapping.parse("bqd,bkd->bqk"), F32), q, k)
    return [w.op(EinSum(AxesMapping.parse("bqk,bkw->bqw"), F32), w.op(Softmax((2,)), scores), v)]


for kind in ("f32", "f16", "bf16"):
    facts = f"2,Q,8,{kind}", f"2,K,8,{kind}", f"2,K,9,{kind}"
    of(f"attention in {kind}", attended, *facts, near=2 * NEAR[kind], Q=(0, 1, 2, 17, 33), K=(3, 5, 1, 2, 20))


def functions(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    return [w.op(op, x) for op in (Exp(), Tanh(), Erf(), Ln(), Cos(), GeluExact(), Floor(), Ceil(), RoundHalfToEven())]


def rounded(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    return [w.op(op, x) for op in (Exp(), Sigmoid(), Floor())]


def powers(w: NodeWiring, x: OutletId, y: OutletId) -> Sequence[OutletId]:
    return [w.binary(Pow(), x, y), w.binary(Max(), x, y), w.binary(Mul(), x, y)]


def casts(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    kinds = [one for one in (DatumType.F16, DatumType.BF16, F32, DatumType.F64) if one != w.dtype(x)]
    return [w.op(Cast(one), x) for one in kinds]


COUNTS = (0, 1, 2, 17, 67)
for kind, near in {**NEAR, "f64": 1e-14, "f32": 2e-6}.items():
    some = functions if kind in ("f32", "f64") else rounded
    of(f"functions of {kind}", some, f"N,{kind}", near=near, has_special=True, N=COUNTS)
    of(f"powers of {kind}", powers, f"N,{kind}", f"N,{kind}", near=near, has_special=True, N=COUNTS)
    of(f"casts from {kind}", casts, f"N,{kind}", has_special=True, N=COUNTS)


def reduced(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    kinds = (Reducer.SUM, Reducer.MAX, Reducer.MIN, Reducer.ARG_MAX_FIRST)
    return [w.op(Reduce((axis,), one), x) for one in kinds for axis in (0, 1)]


def normalised(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    return [w.op(Softmax((1,)), x), w.op(LogSoftmax((0,)), x), w.op(CumSum(1), x)]


for kind in ("f32", "f16", "bf16", "f64", "i32", "u8"):
    near = NEAR.get(kind, 0.0)
    of(f"reductions of {kind}", reduced, f"A,B,{kind}", near=near, A=(1, 2, 5, 3), B=(1, 2, 3, 37))
for kind in ("f32", "bf16"):
    sizes = {"A": (0, 1, 2, 5), "B": (3, 1, 2, 37)}
    of(f"norms of {kind}", normalised, f"A,B,{kind}", near=10 * NEAR[kind], **sizes)


def network(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Convolutions one behind the other, by Winograd's method where it pays, and what is around them."""
    first = relu(w, conv(w, x, 32, 3, 3))
    second = w.binary(Add(), first, conv(w, first, 32, 3, 3))
    return [w.op(MaxPool(window(2, 2, strides=(2, 2))), second)]


def layer(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    norm = w.through(wire_layer_norm, x, 1, eps=1e-5, scale=w.const(by_weights("f32", 32)))
    return [w.binary(Add(), x, linear(w, norm, 32))]


def recurrent(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    weights = [w.const(by_weights("f32", 1, 32, 8)) for _ in range(2)]
    return list(wire_lstm(w.model, "lstm", RecurrentOptions(), RecurrentInputs(x, *weights)))


def best(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    return w.ops(Topk(1, True, 3), x, w.const(np.array(3)))


of("network", network, "B,16,13,13,f32", near=1e-3, B=(0, 1, 2))
of("layer", layer, "S,32,f32", near=1e-4, S=(0, 1, 2, 17))
of("recurrent", recurrent, "T,B,8,f32", near=1e-4, T=(0, 1, 2, 5), B=(2, 1, 2, 7))
of("best", best, "B,20,f32", B=(0, 1, 2, 7))


def table(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    return [w.op(LookupTable(Constant(np.arange(256, dtype="u1")[::-1] ^ 0x5A)), x)]


def quantised(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """To bytes, a product of these, and back."""
    scale, zero = w.const(np.array(0.05, "f4")), w.const(np.array(3, "u1"))
    steps = w.op(QuantizeLinear(DatumType.U8), x, scale, zero)
    matrix = w.op(
        DequantizeLinear(F32),
        w.const(by_weights("i8", 32, 18)),
        w.const(np.array(0.01, "f4")),
        w.const(np.array(0, "i1")),
    )
    real = w.op(DequantizeLinear(F32), steps, scale, zero)
    return [steps, w.op(EinSum(AxesMapping.parse("mk,kn->mn"), F32), real, matrix)]


of("table", table, "N,2,u8", N=(0, 1, 2, 63, 200))
of("quantised", quantised, "M,32,f32", near=1e-4, M=(0, 1, 2, 17))
