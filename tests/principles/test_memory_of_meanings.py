"""What the NumPy meaning of an operator takes is foreseen: of large tensors, within a tenth of what is allocated."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tract_nnef.nnef_only.roi import RoiPool, RoiResample
from tract_nnef.nnef_only.sdpa import Sdpa
from tract_onnx.onnx_only.col2im import Col2Im
from tract_onnx.onnx_only.lookup import OneHotLookup

from tract_core.data import Constant, DatumType
from tract_core.dims import symbol
from tract_core.limits import Room
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.cast import Cast
from tract_core.ops.compress import Compress
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv
from tract_core.ops.cumsum import CumLogSumExp, CumMax, CumSum
from tract_core.ops.deconv import Deconv
from tract_core.ops.deform_conv import DeformConv
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import GeluExact
from tract_core.ops.fft import Fft, Stft
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.ops.grid_sample import GridSample, PaddingMode
from tract_core.ops.iff import Iff
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.lookup import Lookup
from tract_core.ops.lrn import Lrn
from tract_core.ops.non_zero import NonZero
from tract_core.ops.norm import RmsNorm
from tract_core.ops.one_hot import OneHot
from tract_core.ops.pad import Pad, PadEdge, PadReflect
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, PoolSpec, SameUpper, Valid
from tract_core.ops.quantize import DequantizeLinear, LookupTable, QScale, QuantizeLinear, Scale
from tract_core.ops.random import Distribution, Dropout, Multinomial, RandomLike
from tract_core.ops.range import Range
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.resize import Resize, Sampling, Scales
from tract_core.ops.roi_align import MaxRoiPool, RoiAlign
from tract_core.ops.scatter import ScatterElements, ScatterNd
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.ops.tile import Tile
from tract_core.ops.topk import Topk
from tract_core.ops.trilu import Trilu
from tract_core.ops.unique import Unique
from tract_core.runtime.by_parts import MOST_BYTES
from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)
F16, F32, F64, I8, U8, I32, I64 = np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64
U = symbol("U")

SMALL = 1 << 16
"""Bytes of whatever else is made: objects of Python, and arrays of a few elements."""


def floats(*shape: int, kind: Any = F32) -> Array:
    return RANDOM.standard_normal(shape).astype(kind)


def integers(high: int, *shape: int, kind: Any = I64, low: int = 0) -> Array:
    return RANDOM.integers(low, high, shape).astype(kind)


def number(value: float, kind: Any = F32) -> Array:
    return np.array(value, kind)


def einsum(text: str, acc: DatumType = DatumType.F32) -> EinSum:
    inputs, output = text.split("->")
    return EinSum(AxesMapping(tuple(inputs.split(",")), (output,)), acc)


def window(*kernel: int, valid: bool = False, **others: Any) -> PoolSpec:
    return PoolSpec(DataFormat.NCHW, kernel, Valid() if valid else SameUpper(), **others)


def of_floats(kind: Any) -> Iterator[tuple[TypedOp, list[Array]]]:
    """What is computed in f32 where floats are narrower."""
    square = floats(500, 500, kind=kind)
    image, weights, bias = floats(1, 16, 80, 80, kind=kind), floats(16, 16, 3, 3, kind=kind), floats(16, kind=kind)
    inside = integers(500, 500, 500, low=-500)
    yield einsum("ab,bc->ac"), [square, square]
    yield einsum("abc,cdb->da"), [floats(20, 50, 60, kind=kind), floats(60, 70, 50, kind=kind)]
    yield einsum("ab,cb,db->acd"), [floats(50, 50, kind=kind)] * 3
    yield einsum("ab,ab,ab->a"), [square] * 3
    yield Conv(window(3, 3)), [image, weights, bias]
    yield Conv(window(3, 3, valid=True), group=16), [image, weights[:, :1], bias]
    yield Conv(window(3, 3, strides=(4, 4))), [image, weights, bias]
    yield Conv(window(50)), [floats(1, 8, 9000, kind=kind), floats(8, 8, 50, kind=kind), floats(8, kind=kind)]
    yield Deconv(window(3, 3, strides=(2, 2))), [image[..., :40, :40], weights, bias]
    yield MaxPool(window(3, 3)), [image]
    yield MaxPool(window(3, 3), DatumType.I64), [image]
    yield MaxPool(window(2, 2, strides=(2, 2)), DatumType.I32), [image]
    yield SumPool(window(3, 3)), [image]
    yield (
        DeformConv((1, 1), (1, 1), (1, 1), (1, 1)),
        [
            image[..., :50, :50],
            weights,
            floats(1, 18, 50, 50, kind=kind),
            bias,
            floats(1, 9, 50, 50, kind=kind),
        ],
    )
    for mode in Interpolator:
        yield GridSample(mode), [image, floats(1, 90, 90, 2)]
        yield GridSample(mode, PaddingMode.REFLECTION), [image[:, :1], floats(1, 90, 90, 2)]
        for factor in (2.0, 0.3):
            yield Resize((2, 3), Scales((factor, factor)), Sampling(mode)), [image]
    yield Resize((2, 3), Scales((0.3, 0.3)), Sampling(Interpolator.LINEAR, antialias=True)), [image]
    yield Lrn(5), [image]
    for reducer in (Reducer.SUM, Reducer.MAX, Reducer.MEAN_OF_SQUARES, Reducer.ARG_MAX_FIRST):
        yield Reduce((1,), reducer), [square]
    for op in (Softmax((1,)), LogSoftmax((0,)), RmsNorm(1, 1e-5), CumSum(1), CumMax(0, True, True), CumLogSumExp(1)):
        yield op, [square]
    yield NonZero(U), [square]
    yield NonZero(U), [np.where(square > 2, square, 0).astype(kind)]
    yield Topk(1, True, U), [square, number(9, I64)]
    yield Topk(0, False, U), [square, number(400, I64)]
    yield Unique(None, True, U), [square]
    yield Unique(0, False, U), [square]
    yield Unique(0, True, U), [integers(9, 50_000, 5).astype(kind)]
    yield Gather(0), [square[:, 0], inside]
    yield GatherElements(1), [square, inside]
    yield GatherNd(0), [square, integers(500, 500, 100, 2)]
    for reduction in ("none", "add", "max"):
        yield ScatterElements(1, reduction), [square, inside, square]
        yield ScatterNd(reduction), [square, inside[0, :, None], square]
    yield Trilu(True), [square, number(0, I64)]
    yield Compress(0, U), [square, square[0] > 0]
    yield TypedConcat(0), [square, square]
    yield Tile((2, 3)), [square]
    yield Pad(((0, 0), (9, 9)), PadEdge()), [square]
    yield Pad(((5, 5), (9, 9)), PadReflect()), [square]
    yield LstmEpilogue(125), [square, square[:, :125]]
    yield GruEpilogue(100), [square[:, :300], square[:, :300], square[:, :100]]
    yield Fft(1), [square.reshape(500, 250, 2)]
    yield Fft(0, True), [square.reshape(500, 250, 2)]
    yield Stft(1, 64, 16), [floats(10, 5000, 2, kind=kind)]
    yield Stft(1, 64, 16, Constant(floats(64))), [floats(10, 5000, 2, kind=kind)]
    regions = [np.abs(floats(200, 4)) * 10, np.zeros(200, I64)]
    for align in (RoiAlign(7, 7, 1.0, 2), RoiAlign(7, 7, 1.0, 0, True), RoiPool(7, 7), RoiResample(7, 7)):
        yield align, [floats(1, 32, 50, 50, kind=kind), *regions]
    yield MaxRoiPool(7, 7, 1.0), [image, np.concatenate([np.zeros((200, 1), F32), regions[0]], 1)]
    yield Dropout(3), [square, number(0.5), np.array(True)]
    yield Multinomial(100, DatumType.I64, 3), [floats(100, 500, kind=kind)]
    heads = [floats(1, count, 200, 32, kind=kind) for count in (4, 2, 2)]
    yield Sdpa(0.1, causal=True), heads
    yield Sdpa(0.1), [*heads, floats(1, 1, 200, 200, kind=kind)]
    yield (
        Col2Im(8, (80, 80), (1, 1), (1, 1), (1, 1), (1, 1)),
        [floats(1, 72, 6400, kind=kind), np.array([80, 80]), np.array([3, 3])],
    )
    yield Iff(), [square > 0, square, square[:, :1]]
    yield Add(), [square[:, :1], square[:1]]
    yield GeluExact(), [square]
    for to in (DatumType.F16, DatumType.I8, DatumType.I64):
        yield Cast(to), [square]


def of_integers() -> Iterator[tuple[TypedOp, list[Array]]]:
    small, square = integers(99, 500, 500, kind=I8), floats(500, 500)
    image, weights = integers(9, 1, 16, 80, 80, kind=I8), integers(9, 16, 16, 3, 3, kind=I8)
    sums = integers(9, 500, 500, kind=I32)
    yield einsum("ab,bc->ac", DatumType.I32), [small, small]
    yield einsum("ab,bc->ac", DatumType.I64), [integers(9, 300, 300)] * 2
    yield einsum("ab,b,b->a", DatumType.I32), [small, small[0], small[0]]
    parameters = [number(0, I32), number(0.1)]
    yield Conv(window(3, 3)), [image, weights, integers(9, 16, kind=I32)]
    yield (
        Conv(window(3, 3), q_output=DatumType.I8),
        [image, weights, integers(9, 16, kind=I32), *parameters, *parameters, *parameters],
    )
    quantised = EinSum(AxesMapping(("ab", "bc", *[""] * 7), ("ac",)), DatumType.I32, DatumType.I8)
    yield quantised, [small, small, number(0, I32), *[number(0, I8), number(0.1)] * 3]
    for to in (DatumType.I8, DatumType.I16):
        yield QuantizeLinear(to, 1), [square, number(0.1), number(0, to.numpy)]
        yield QuantizeLinear(to, 1), [square.astype(F64), number(0.1, F64), number(0, to.numpy)]
    yield QuantizeLinear(DatumType.I8, 1, 10), [square, floats(500, 50), np.zeros((500, 50), I8)]
    for scale in (F16, F32, F64):
        kind = DatumType.from_numpy(np.dtype(scale))
        yield DequantizeLinear(kind, 1), [small, number(0.1, scale), number(0, I8)]
        yield DequantizeLinear(kind, 1, 10), [small, floats(500, 50, kind=scale), np.zeros((500, 50), I8)]
    yield Scale(), [np.full((1, 1), 0.1, F32), sums]
    yield QScale(3, 2), [sums]
    yield LookupTable(Constant(np.arange(256).astype(U8))), [small.astype(U8)]
    yield Topk(0, True, U), [small, number(450, I64)]
    yield Unique(None, False, U), [small]
    yield Resize((2, 3), Scales((2.0, 2.0)), Sampling(Interpolator.CUBIC)), [image.astype(U8)]
    yield OneHot(1, 100, Constant(number(0)), Constant(number(1))), [integers(100, 5000, low=-100)]
    yield Range(U), [number(0, I64), number(500_000, I64), number(1, I64)]
    yield Range(U), [number(0), number(5e5), number(1)]
    for distribution in Distribution:
        yield RandomLike(distribution, 0.0, 1.0, DatumType.F32, 3), [square]
    keys = Constant(np.arange(100))
    yield Lookup(keys, Constant(np.arange(100.0)), Constant(np.array(0.0))), [integers(100, 50_000)]
    yield OneHotLookup(keys, False), [integers(100, 20_000)]


def cases() -> list[Any]:
    made = [(np.dtype(kind).name, case) for kind in (F32, F16, F64) for case in of_floats(kind)]
    made += [("integers", case) for case in of_integers()]
    names = [f"{case[0].name}-{kind}-{number}" for number, (kind, case) in enumerate(made)]
    return [pytest.param(*case, id=name) for name, (_, case) in zip(names, made, strict=True)]


def planned(op: TypedOp, inputs: list[Array]) -> TypedSimplePlan:
    model = TypedModel()
    model.symbols.add("U")
    facts = [TypedFact.of_value(Constant(one)).without_value() for one in inputs]
    sources = [model.add_source(f"x{slot}", fact) for slot, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("op", op, sources))
    return TypedSimplePlan(model)


@pytest.fixture
def foreseen(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """The most memory that a run wanted so far."""
    found, check = [0], Room.check

    def noting(room: Room, more: int) -> None:
        found[0] = max(found[0], room.taken + more)
        check(room, more)

    monkeypatch.setattr(Room, "check", noting)
    return lambda: found[0]


@pytest.mark.parametrize(("op", "inputs"), cases())
def test_no_meaning_takes_more_than_is_foreseen(op: TypedOp, inputs: list[Array], foreseen: Callable[[], int]) -> None:
    plan = planned(op, inputs)
    plan.run(inputs)  # what is made once, and kept
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        plan.run(inputs)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak <= 1.1 * foreseen() + (MOST_BYTES if op.by_element else SMALL)
