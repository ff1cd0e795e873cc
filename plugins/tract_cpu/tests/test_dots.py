"""Products of small integers and of bf16 that are summed by neighbours: exact at the ends of types, for any sizes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tract_cpu.kernels.attention import AttentionPlan
from tract_cpu.kernels.conv import ConvPlan
from tract_cpu.kernels.matmul import MatMulPlan
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import ISAS, Isa

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.cast import Cast
from tract_core.ops.conv import Conv, KernelFormat, reference
from tract_core.ops.einsum import EinSum
from tract_core.ops.pool_spec import DataFormat, PoolSpec, SameUpper
from tract_core.ops.softmax import Softmax

SIZES = [(1, 1, 1), (1, 4, 16), (2, 3, 17), (3, 5, 1), (5, 0, 3), (0, 4, 4), (13, 7, 31), (15, 8, 33), (130, 66, 40)]

SHORT = {"u1": "u8", "i1": "i8", "i2": "i16", "u2": "u16"}


def values(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Many of them at the ends of the type, whose products are the largest."""
    ends = np.iinfo(dtype)
    found = np.random.default_rng(seed).integers(ends.min, ends.max, shape, np.int64, endpoint=True)
    found.ravel()[::2] = ends.min
    found.ravel()[1::3] = ends.max
    return found.astype(dtype)


def model_of(mapping: str, left: Any, right: Any, acc: DatumType = DatumType.I32) -> TypedModel:
    """A product; of factors, arrays are constants, and texts are the facts of inputs."""
    model = TypedModel()
    factors = [
        model.add_source(name, parse_typed_fact(one, model.symbols))
        if isinstance(one, str)
        else model.add_const(name, one)
        for name, one in (("a", left), ("b", right))
    ]
    model.set_outputs(model.wire_node("product", EinSum(AxesMapping.parse(mapping), acc), factors))
    return model


def groups_of(plan: CpuPlan) -> list[int]:
    """How many neighbours are summed at once, for every product."""
    kernels = [step.kernel for step in plan.steps if hasattr(step, "kernel")]
    return [one.grouping.size if one.grouping else 1 for one in kernels if isinstance(one, MatMulPlan)]


def best_group(isa: Isa, bits: int) -> int:
    """How many integers of so many bits, whichever they are, are summed at once at most."""
    dots = (one for one in isa.dots if one.sums == "i32" and not one.limit)
    return max((one.group for one in dots if bits * one.group <= 32), default=1)


TYPES = [("u1", "i1"), ("i1", "u1"), ("i1", "i1"), ("u1", "u1"), ("i2", "u1"), ("i1", "i2"), ("i2", "i2")]


@pytest.mark.parametrize(("left", "right"), TYPES, ids=str)
def test_products_of_small_integers_are_exact(any_isa, left, right) -> None:
    group = best_group(any_isa, 16 if "i2" in (left, right) else 8)
    one, other = SHORT[left], SHORT[right]
    both = CpuPlan(model_of("mk,kn->mn", f"M,K,{one}", f"K,N,{other}"), any_isa)
    turned = CpuPlan(model_of("km,nk->mn", f"K,M,{one}", f"N,K,{other}"), any_isa)
    assert groups_of(both) == groups_of(turned) == [group]
    for rows, depth, columns in SIZES:
        a, b = values(left, (rows, depth), 0), values(right, (depth, columns), 1)
        wanted = (a.astype("i8") @ b.astype("i8")).astype("i4")
        np.testing.assert_array_equal(both.spawn().run([a, b])[0], wanted)
        transposed = [np.ascontiguousarray(one.T) for one in (a, b)]
        np.testing.assert_array_equal(turned.spawn().run(transposed)[0], wanted)


@pytest.mark.parametrize(("left", "right"), TYPES[:4], ids=str)
@pytest.mark.parametrize("size", [(1, 4, 16), (5, 0, 3), (15, 10, 33)], ids=str)
def test_weights_are_grouped_when_the_model_is_prepared(any_isa, left, right, size) -> None:
    rows, depth, columns = size
    a, b = values(left, (rows, depth), 0), values(right, (depth, columns), 1)
    wanted = (a.astype("i8") @ b.astype("i8")).astype("i4")
    plan = CpuPlan(model_of("mk,kn->mn", f"M,{depth},{SHORT[left]}", b), any_isa)
    np.testing.assert_array_equal(plan.spawn().run([a])[0], wanted)
    plan = CpuPlan(model_of("mk,kn->mn", a, f"{depth},N,{SHORT[right]}"), any_isa)
    np.testing.assert_array_equal(plan.spawn().run([b])[0], wanted)


def test_sums_wrap_around(any_isa) -> None:
    """Beyond 2**31, with signs turned over and without."""
    for left, right in (("u1", "i1"), ("i1", "i1"), ("u1", "u1")):
        a, b = (
            np.full(shape, np.iinfo(kind).min or 255, kind)
            for shape, kind in (((2, 140000), left), ((140000, 3), right))
        )
        wanted = (a.astype("i8") @ b.astype("i8")).astype("i4")
        plan = CpuPlan(model_of("mk,kn->mn", f"2,K,{SHORT[left]}", f"K,3,{SHORT[right]}"), any_isa)
        np.testing.assert_array_equal(plan.spawn().run([a, b])[0], wanted)


def test_wide_integers_that_are_small_are_summed_by_neighbours(any_isa) -> None:
    """What is cast from bytes, times weights that fit a byte: no zero point is taken away."""
    weights, x = values("i1", (21, 18), 0).astype("i4"), values("u1", (5, 21), 1)
    model = TypedModel()
    (wide,) = model.wire_node("wide", Cast(DatumType.I32), [model.add_source("x", parse_typed_fact("5,21,u8"))])
    right = model.add_const("w", weights)
    model.set_outputs(model.wire_node("y", EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.I32), [wide, right]))
    plan = CpuPlan(model, any_isa)
    assert groups_of(plan) == [best_group(any_isa, 8)]
    np.testing.assert_array_equal(plan.spawn().run([x])[0], x.astype("i8") @ weights)


def test_pairs_of_matrices_have_panels_of_their_own(any_isa) -> None:
    a, b = values("i1", (2, 3, 5, 9), 0), values("i1", (2, 3, 9, 20), 1)
    wanted = (a.astype("i8") @ b.astype("i8")).astype("i4")
    for right, inputs in ((b, [a]), ("2,3,9,20,i8", [a, b])):
        plan = CpuPlan(model_of("bhmk,bhkn->bhmn", "B,3,5,9,i8", right), any_isa)
        np.testing.assert_array_equal(plan.spawn().run(inputs)[0], wanted)


def bf16(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(ml_dtypes.bfloat16)


def test_products_of_bf16_are_summed_in_f32_and_rounded_once(any_isa) -> None:
    group = max((one.group for one in any_isa.dots if one.sums == "f32"), default=1)
    weights = bf16((10, 33), 1)
    both = CpuPlan(model_of("mk,kn->mn", "M,K,bf16", "K,N,bf16", DatumType.F32), any_isa)
    turned = CpuPlan(model_of("km,nk->mn", "K,M,bf16", "N,K,bf16", DatumType.F32), any_isa)
    known = CpuPlan(model_of("mk,kn->mn", "M,10,bf16", weights, DatumType.F32), any_isa)
    assert groups_of(both) == groups_of(turned) == groups_of(known) == [group]
    for rows, depth, columns in [*SIZES, (15, 10, 33)]:
        a, b = bf16((rows, depth), 0), bf16((depth, columns), 1)
        cases = [(both, [a, b]), (turned, [np.ascontiguousarray(one.T) for one in (a, b)])]
        if b.shape == weights.shape:
            cases.append((known, [a]))
        wide = [one.astype("f8") for one in (a, b)]
        wanted, bound = wide[0] @ wide[1], np.abs(wide[0]) @ np.abs(wide[1])
        for plan, inputs in cases:
            found = plan.spawn().run(inputs)[0].astype("f8")
            assert np.all(np.abs(found - wanted) <= bound * 2.0**-20 + np.abs(wanted) * 2.0**-8)


def test_bf16_that_is_no_number_stays_so(any_isa) -> None:
    a = np.array([[np.inf, 1, 2], [np.nan, 0, 0], [1, np.inf, -1], [3e38, 3e38, 3e38]], ml_dtypes.bfloat16)
    b = np.array([[1, 0], [2, 1], [-0.0, 3]], ml_dtypes.bfloat16)
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = (a.astype("f4") @ b.astype("f4")).astype(ml_dtypes.bfloat16)
    (found,) = CpuPlan(model_of("mk,kn->mn", "4,3,bf16", b, DatumType.F32), any_isa).spawn().run([a])
    np.testing.assert_array_equal(found.astype("f4"), wanted.astype("f4"))


CONVS = [
    ((3, 20, 2), {"kernel": (7, 7), "strides": (2, 2), "size": (9, 12)}),
    ((16, 33, 1), {"kernel": (3, 3), "size": (5, 17)}),
    ((37, 16, 2), {"kernel": (1, 1), "size": (4, 3)}),
    ((21, 5, 1), {"kernel": (3,), "dilations": (2,), "size": (11,)}),
    ((64, 32, 1), {"kernel": (3, 1), "group": 2, "size": (4, 5), "layout": DataFormat.NHWC}),
    ((18, 18, 1), {"kernel": (3, 3), "group": 18, "size": (4, 5)}),
    ((16, 16, 2), {"kernel": (2, 5), "group": 16, "size": (3, 20), "strides": (1, 2)}),
    ((18, 18, 1), {"kernel": (3,), "group": 18, "size": (17,), "dilations": (2,)}),
    ((6, 4, 1), {"kernel": (2, 2), "group": 2, "size": (4, 5)}),
]
"""Input and output channels, and the batch."""


def convolution(
    channels: tuple[int, int, int],
    *,
    kernel: tuple[int, ...],
    size: tuple[int, ...],
    strides: tuple[int, ...] = (),
    dilations: tuple[int, ...] = (),
    group: int = 1,
    layout: DataFormat = DataFormat.NCHW,
) -> tuple[Conv, tuple[int, ...], tuple[int, ...]]:
    """The operator, and the shapes of data and kernel."""
    inputs, outputs, batch = channels
    op = Conv(PoolSpec(layout, kernel, SameUpper(), dilations, strides), KernelFormat.OIHW, group)
    data = (batch, inputs, *size) if layout is DataFormat.NCHW else (batch, *size, inputs)
    return op, data, (outputs, inputs // group, *kernel)


def conv_plan(isa: Isa, op: Conv, x: np.ndarray[Any, Any], *constants: np.ndarray[Any, Any]) -> CpuPlan:
    model = TypedModel()
    fact = ",".join([*map(str, x.shape), DatumType.from_numpy(x.dtype).short])
    given = [model.add_const(f"c{place}", one) for place, one in enumerate(constants)]
    model.set_outputs(model.wire_node("conv", op, [model.add_source("x", parse_typed_fact(fact)), *given]))
    plan = CpuPlan(model, isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    return plan


@pytest.mark.parametrize(("channels", "options"), CONVS, ids=str)
@pytest.mark.parametrize(("left", "right"), TYPES[:4], ids=str)
def test_convolutions_of_bytes_are_exact(any_isa, left, right, channels, options) -> None:
    """With borders of zeros, whichever signs are turned over."""
    op, shape, kernel = convolution(channels, **options)
    x, weights = values(left, shape, 0), values(right, kernel, 1)
    bias = np.random.default_rng(2).integers(-(2**31), 2**31, kernel[0]).astype("i4")
    wanted = reference(op, x.astype("f8"), weights.astype("f8"), bias.astype("f8"))
    plan = conv_plan(any_isa, op, x, weights, bias)
    groups = [step.kernel.grouping for step in plan.steps if isinstance(step.kernel, ConvPlan)]
    best = best_group(any_isa, 8)
    grouped = best > 1 and kernel[0] != 4 and op.group < 16
    assert [one and one.size for one in groups] == [best if grouped else None]
    (found,) = plan.spawn().run([x])
    np.testing.assert_array_equal(found, wanted.astype("i8").astype("i4"))


ENDS = [("u1", 64, (0, 255)), ("i1", 127, (-128, 127)), ("u1", 127, (0, 255)), ("i1", 64, (-128, 127))]
"""Types of data, the largest weights, and the ends of the data: sums of two products are as large as they can be."""


@pytest.mark.parametrize(("left", "most", "ends"), ENDS, ids=str)
@pytest.mark.parametrize("rows", [1, 3, 16, 17, 40])
def test_products_with_small_weights_are_exact(any_isa, left, most, ends, rows) -> None:
    """In pairs of 16 bits where these hold two of them, and else in other ways."""
    for depth in (1, 2, 3, 4, 5, 31, 64):
        rng = np.random.default_rng(depth)
        x = rng.choice([*ends, 0, 1, ends[1] - 1], (rows, depth)).astype(left)
        weights = rng.choice([-most, most, -most + 1, 0], (depth, 19)).astype("i1")
        weights[:, 0], weights[:, 1] = most, -most
        x[0] = ends[0] or ends[1]
        wanted = (x.astype("i8") @ weights.astype("i8")).astype("i4")
        plan = CpuPlan(model_of("mk,kn->mn", f"{rows},{depth},{SHORT[left]}", weights), any_isa)
        np.testing.assert_array_equal(plan.spawn().run([x])[0], wanted)


@pytest.mark.parametrize("left", ["u1", "i1"])
@pytest.mark.parametrize("most", [64, 65, 127, 128])
def test_weights_say_whether_pairs_fit_16_bits(left, most) -> None:
    """Few rows: there, factors with signs may be in pairs, too. One that is too large is enough."""
    isa = next(one for one in ISAS if one.name == "avx2")
    for sign in (1, -1) if most < 128 else (-1,):
        weights = np.ones((8, 8), "i1")
        weights[3, 5] = sign * most
        plan = CpuPlan(model_of("mk,kn->mn", f"2,8,{SHORT[left]}", weights), isa)
        (found,) = [step.kernel.grouping for step in plan.steps if isinstance(step.kernel, MatMulPlan)]
        assert found.size == (4 if most < 128 else 2)
        assert found.left.name == ("u8" if (left, most) == ("u1", 64) else "i8" if most < 128 else "i16")


@pytest.mark.parametrize(("left", "most", "ends"), ENDS, ids=str)
def test_convolutions_with_small_weights_are_exact(any_isa, left, most, ends) -> None:
    for channels, options in CONVS[:6]:
        op, shape, kernel = convolution(channels, **options)
        rng = np.random.default_rng(3)
        x = rng.choice([*ends, 0, ends[1] - 1], shape).astype(left)
        weights = rng.choice([-most, most, -most + 1, 0], kernel).astype("i1")
        weights[0] = most
        bias = np.zeros(kernel[0], "i4")
        wanted = reference(op, x.astype("f8"), weights.astype("f8"), bias.astype("f8"))
        (found,) = conv_plan(any_isa, op, x, weights, bias).spawn().run([x])
        np.testing.assert_array_equal(found, wanted.astype("i8").astype("i4"))


@pytest.mark.parametrize(("channels", "options"), [*CONVS[:4], *CONVS[5:8]], ids=str)
def test_convolutions_of_bf16_are_summed_in_f32(any_isa, channels, options) -> None:
    op, shape, kernel = convolution(channels, **options)
    x, weights, bias = bf16(shape, 0), bf16(kernel, 1), bf16(kernel[:1], 2)
    wide = [one.astype("f8") for one in (x, weights, bias)]
    wanted, bound = reference(op, *wide), reference(op, *map(np.abs, wide))
    found = conv_plan(any_isa, op, x, weights, bias).spawn().run([x])[0].astype("f8")
    assert np.all(np.abs(found - wanted) <= bound * 2.0**-18 + np.abs(wanted) * 2.0**-7)


def attention(queries: int, keys: int, depth: int, width: int) -> TypedModel:
    """Of two heads, in bf16. The queries of a head are read in several tasks where there are more than 16."""
    model = TypedModel()
    facts = (f"2,{queries},{depth},bf16", f"2,{keys},{depth},bf16", f"2,{keys},{width},bf16")
    given = [model.add_source(name, parse_typed_fact(fact)) for name, fact in zip("qkv", facts, strict=True)]
    scores = EinSum(AxesMapping.parse("bqd,bkd->bqk"), DatumType.F32)
    (x,) = model.wire_node("shares", Softmax((2,)), model.wire_node("scores", scores, given[:2]))
    mixed = EinSum(AxesMapping.parse("bqk,bkw->bqw"), DatumType.F32)
    model.set_outputs(model.wire_node("mixed", mixed, [x, given[2]]))
    return model


ATTENTIONS = [(1, 5, 8, 9), (17, 33, 8, 9), (40, 2, 6, 17), (16, 0, 4, 3), (33, 1, 7, 5), (20, 64, 2, 33)]


@pytest.mark.parametrize("sizes", ATTENTIONS, ids=str)
def test_attention_in_bf16_is_near_float64(isa, sizes) -> None:
    queries, keys, depth, width = sizes
    q, k, v = bf16((2, queries, depth), 0), bf16((2, keys, depth), 1), bf16((2, keys, width), 2)
    plan = CpuPlan(attention(*sizes), isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    kernels = [step.kernel for step in plan.steps if isinstance(step.kernel, AttentionPlan)]
    grouped = any(one.sums == "f32" for one in isa.dots) and depth % 2 == 0
    assert [one.grouping is not None for one in kernels] == [grouped] * (queries > 1 and keys != 1)
    (found,) = plan.spawn().run([q, k, v])
    powers = np.exp(np.einsum("bqd,bkd->bqk", *(one.astype("f8") for one in (q, k))))
    shares = powers / np.where(keys, powers.sum(axis=2, keepdims=True), 1)
    wanted = np.einsum("bqk,bkw->bqw", shares, v.astype("f8"))
    np.testing.assert_allclose(found.astype("f8"), wanted, rtol=0.03, atol=0.03)


def test_attention_in_bf16_reads_every_value(isa) -> None:
    """What is no number at the last key, whose group has no second one, is in every row, and in its column alone."""
    q, k, v = bf16((2, 18, 4), 0), bf16((2, 3, 4), 1), np.ones((2, 3, 5), ml_dtypes.bfloat16)
    v[1, 2, 4] = np.nan
    (found,) = CpuPlan(attention(18, 3, 4, 5), isa).spawn().run([q, k, v])
    is_nan = np.isnan(found.astype("f8"))
    assert is_nan[1, :, 4].all()
    assert is_nan.sum() == 18
    np.testing.assert_array_equal(found[0].astype("f8"), 1.0)


@pytest.mark.parametrize(("depth", "packs"), [(64, False), (65, True), (4096, True)], ids=str)
def test_rows_of_bf16_are_read_where_they_are_if_they_are_whole_groups(any_isa, depth, packs) -> None:
    """Rows of 4096 displace each other from the cache."""
    weights = bf16((depth, 33), 1)
    plan = CpuPlan(model_of("mk,kn->mn", f"29,{depth},bf16", weights, DatumType.F32), any_isa)
    (kernel,) = (step.kernel for step in plan.steps if isinstance(step.kernel, MatMulPlan))
    if kernel.grouping is not None:
        assert kernel.packs == packs
    a = bf16((29, depth), 0)
    wide = [one.astype("f8") for one in (a, weights)]
    wanted, bound = wide[0] @ wide[1], np.abs(wide[0]) @ np.abs(wide[1])
    found = plan.spawn().run([a])[0].astype("f8")
    assert np.all(np.abs(found - wanted) <= bound * 2.0**-18 + np.abs(wanted) * 2.0**-8)
