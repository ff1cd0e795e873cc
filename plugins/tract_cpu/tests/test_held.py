"""Narrow floats in blocks of channels, which are f32 there where no instruction sums their products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from golden_models import conv, relu, window
from tract_cpu.kernels.attention import AttentionPlan
from tract_cpu.kernels.conv import ConvPlan
from tract_cpu.kernels.matmul import MatMulPlan
from tract_cpu.plan import CpuPlan
from tract_cpu.target import Rounding
from tract_llvm.isa import Isa
from tract_llvm.language.types import F32

from tract_core.data import Constant, DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Max, Min, Mul
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv
from tract_core.ops.downsample import Downsample
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Abs, Neg, Sigmoid
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import Softmax
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.transforms.float_precision import FloatPrecision

Array = np.ndarray[Any, Any]
Build = Callable[[NodeWiring, OutletId], Sequence[OutletId]]

KINDS = {"bf16": (DatumType.BF16, ml_dtypes.bfloat16, 2.0**-6), "f16": (DatumType.F16, np.float16, 2.0**-9)}
"""The type of the core, of NumPy, and how far results may be off, in parts of the largest: some roundings."""


def narrow_model(build: Build, fact: str, kind: str) -> TypedModel:
    """A model in a narrow type."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    model.set_outputs(build(NodeWiring(model, "n"), x))
    return FloatPrecision("f32", kind).apply(model.declutter()).declutter()


def is_held(isa: Isa, kind: str) -> bool:
    return all(dot.left != kind for dot in isa.dots)


def weights(w: NodeWiring, *shape: int) -> OutletId:
    random = np.random.default_rng(len(w.model.nodes))
    return w.const((random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("f4"))


def alone(w: NodeWiring, x: OutletId, *, strides: tuple[int, int] = (1, 1)) -> OutletId:
    """Each channel by itself."""
    op = Conv(window(3, 3, strides=strides), group=32)
    return w.op(op, x, weights(w, 32, 1, 3, 3), weights(w, 32))


def layers(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """What reads few channels, what reads blocks, a residual, and an output in the middle."""
    first = relu(w, conv(w, x, 32, 3, 3))
    second = w.binary(Add(), first, conv(w, relu(w, conv(w, first, 32, 1, 1)), 32, 3, 3))
    return [second, conv(w, second, 5, 1, 1)]


def apart(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Channels by themselves, between limits, and pools."""
    first = conv(w, x, 32, 1, 1)
    second = w.binary(Min(), w.binary(Max(), alone(w, first), w.scalar(0.0, x)), w.scalar(6.0, x))
    pooled = w.op(MaxPool(window(3, 3, strides=(2, 2))), alone(w, second, strides=(2, 2)))
    return [w.op(SumPool(window(2, 2), normalize=True, count_include_pad=False), pooled)]


def joined(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """Parts of a tensor in blocks, one of which is there plain; a border; every other position."""
    first, second = conv(w, x, 32, 3, 3), w.op(Sigmoid(), conv(w, x, 32, 1, 1))
    whole = w.op(TypedConcat(1), first, second, first)
    grown = w.op(Pad(((0, 0), (0, 0), (1, 2), (0, 1)), PadConstant(Constant(np.float32(0.3)))), whole)
    return [w.op(Downsample(2, 2, 1), conv(w, grown, 32, 3, 3))]


def excited(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
    """The largest numbers of channels scale these."""
    first = conv(w, x, 32, 3, 3)
    mean = w.op(Reduce((2, 3), Reducer.MAX), first)
    return [w.binary(Mul(), first, w.op(Sigmoid(), conv(w, mean, 32, 1, 1)))]


NETWORKS = {"layers": (layers, 3), "apart": (apart, 17), "joined": (joined, 32), "excited": (excited, 16)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_near_to_those_in_numpy(isa, name, kind) -> None:
    build, channels = NETWORKS[name]
    model = narrow_model(build, f"B,{channels},S,S,f32", kind)
    plan, plain = CpuPlan(model, isa), TypedSimplePlan(model)
    for batch, size in ((1, 9), (2, 5), (1, 16), (0, 7)):
        _, dtype, near = KINDS[kind]
        x = np.random.default_rng(size).standard_normal((batch, channels, size, size)).astype(dtype)
        for found, wanted in zip(plan.spawn().run([x]), plain.spawn().run([x]), strict=True):
            assert found.dtype == wanted.dtype == dtype
            wide = [np.asarray(one).astype("f8") for one in (found, wanted)]
            assert np.abs(wide[0] - wide[1]).max(initial=0) <= near * np.abs(wide[1]).max(initial=1)


@pytest.mark.parametrize("kind", KINDS)
def test_convolutions_read_f32_where_nothing_sums_narrow_products(any_isa, kind) -> None:
    plan = CpuPlan(narrow_model(layers, "1,3,9,9,f32", kind), any_isa, rounding=Rounding(winograd=False))
    kernels = [step.kernel for step in plan.details.steps if hasattr(step, "kernel")]
    convs = [one for one in kernels if isinstance(one, ConvPlan)]
    held = is_held(any_isa, kind)
    assert len(convs) == 4
    assert all((one.element is F32 and one.weights is F32) == held for one in convs[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_infinities_and_what_is_no_number_come_through(isa, kind) -> None:
    def build(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
        op = Conv(window(1, 1))
        return [
            relu(w, w.op(op, x, w.const(np.eye(32, dtype="f4").reshape(32, 32, 1, 1)), w.const(np.zeros(32, "f4"))))
        ]

    dtype = KINDS[kind][1]
    x = np.zeros((1, 32, 2, 2), dtype)
    largest = ml_dtypes.finfo(dtype).max
    x[0, :, 0, 0], x[0, 3, 0, 1], x[0, 4, 1, 1], x[0, 5, 1, 0] = 1, largest, np.inf, np.nan
    plan = CpuPlan(narrow_model(build, "1,32,2,2,f32", kind), isa)
    (found,) = plan.spawn().run([x])
    wanted = np.einsum("oi,bihw->bohw", np.eye(32), np.where(np.isfinite(x.astype("f8")), x.astype("f8"), 0))
    wanted[0, :, 1, 1], wanted[0, :, 1, 0] = np.nan, np.nan  # 0 times these
    wanted[0, 4, 1, 1] = np.inf
    np.testing.assert_array_equal(np.asarray(found).astype("f8"), wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_blocks_is_seen_in_its_own_type(isa, kind) -> None:
    model = narrow_model(layers, "1,3,9,9,f32", kind)
    seen: dict[OutletId, Array] = {}
    x = np.random.default_rng(0).standard_normal((1, 3, 9, 9)).astype(KINDS[kind][1])
    CpuPlan(model, isa).spawn_observed(lambda _, values: seen.update(values)).run([x])
    assert seen
    assert {np.asarray(one).dtype for one in seen.values()} == {np.dtype(KINDS[kind][1])}


SIZES = [(1, 7, 33), (1, 1000, 2000), (2, 8, 16), (17, 33, 40), (0, 5, 3), (3, 0, 5)]


@pytest.mark.parametrize("kind", KINDS)
def test_products_have_panels_of_f32_but_for_single_rows_of_many_weights(isa, kind) -> None:
    _, dtype, near = KINDS[kind]
    for rows, depth, columns in SIZES:
        random = np.random.default_rng(rows)
        a, b = (random.standard_normal(one).astype(dtype) for one in ((rows, depth), (depth, columns)))
        for known in (False, True):
            model = TypedModel()
            left = model.add_source("a", parse_typed_fact(f"{rows},{depth},{kind}"))
            right = (
                model.add_const("b", b)
                if known
                else model.add_source("b", parse_typed_fact(f"{depth},{columns},{kind}"))
            )
            model.set_outputs(
                model.wire_node("y", EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F32), [left, right])
            )
            plan = CpuPlan(model, isa)
            (found,) = plan.spawn().run([a] if known else [a, b])
            wanted = a.astype("f8") @ b.astype("f8")
            assert np.abs(found.astype("f8") - wanted).max(initial=0) <= near * np.abs(wanted).max(initial=1)
            products = [
                one.kernel for one in plan.details.steps if isinstance(getattr(one, "kernel", None), MatMulPlan)
            ]
            if is_held(isa, kind):
                assert [one.right is F32 for one in products] == [(rows, depth) != (1, 1000)]


@pytest.mark.parametrize("kind", KINDS)
def test_attention_reads_keys_and_values_as_f32(isa, kind) -> None:
    def build(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
        scores = w.op(EinSum(AxesMapping.parse("bqd,bkd->bqk"), DatumType.F32), x, x)
        return [w.op(EinSum(AxesMapping.parse("bqk,bkw->bqw"), DatumType.F32), w.op(Softmax((2,)), scores), x)]

    model = narrow_model(build, "2,Q,8,f32", kind)
    plan, plain, (_, dtype, near) = CpuPlan(model, isa), TypedSimplePlan(model), KINDS[kind]
    (kernel,) = [one.kernel for one in plan.details.steps if isinstance(getattr(one, "kernel", None), AttentionPlan)]
    assert (kernel.element is F32) == is_held(isa, kind)
    for queries in (1, 2, 17, 33):
        x = np.random.default_rng(queries).standard_normal((2, queries, 8)).astype(dtype)
        found, wanted = (np.asarray(one.spawn().run([x])[0]).astype("f8") for one in (plan, plain))
        assert np.abs(found - wanted).max() <= 2 * near * np.abs(wanted).max()


@pytest.mark.parametrize("kind", KINDS)
def test_what_chooses_among_numbers_rounds_none_and_changes_none(isa, kind) -> None:
    """Of all numbers of 16 bits: signs, the smaller and the larger ones, and what is as it was."""

    def build(w: NodeWiring, x: OutletId) -> Sequence[OutletId]:
        limited = w.binary(Min(), w.binary(Max(), x, w.scalar(-1.0, x)), w.scalar(6.0, x))
        turned = w.op(Neg(), w.op(Abs(), x))
        twice = w.binary(Max(), turned, w.binary(Add(), x, x))
        return [limited, turned, twice]

    dtype = KINDS[kind][1]
    x = np.arange(1 << 16, dtype="u4").astype("u2").view(dtype)
    plan = CpuPlan(narrow_model(build, "N,f32", kind), isa)
    limited, turned, twice = (np.asarray(one) for one in plan.spawn().run([x]))
    with np.errstate(all="ignore"):
        doubled = (x.astype("f4") * 2).astype(dtype).astype("f4")
        wanted = (
            np.clip(x.astype("f4"), -1, 6).astype(dtype),
            -np.abs(x),
            np.maximum(-np.abs(x.astype("f4")), doubled).astype(dtype),
        )
    for found, one in zip((limited, turned, twice), wanted, strict=True):
        is_nan = np.isnan(one.astype("f4"))
        np.testing.assert_array_equal(np.isnan(found.astype("f4")), is_nan)
        bits = f"u{one.itemsize}"
        np.testing.assert_array_equal(found[~is_nan].view(bits), one[~is_nan].view(bits))
