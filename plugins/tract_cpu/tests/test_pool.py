"""Pools of every layout and rank, on every instruction set of this machine, against the reference in float64."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan

from tract_core.data import DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.pool import MaxPool, SumPool, max_pool, sum_pool
from tract_core.ops.pool_spec import DataFormat, Explicit, ExplicitOnnxPool, PoolSpec, SameLower, SameUpper, Valid
from tract_core.runtime.plan import TypedSimplePlan

SPATIAL = {1: [(1,), (2,), (170,)], 2: [(2, 3), (7, 70)], 3: [(3, 4, 35)]}


def specs(layout: DataFormat, rank: int) -> list[PoolSpec]:
    def spec(kernel: int, padding, dilation: int = 1, stride: int = 1) -> PoolSpec:
        return PoolSpec(layout, (kernel,) * rank, padding, (dilation,) * rank, (stride,) * rank)

    one, two = (1,) * rank, (2,) * rank
    return [
        spec(1, Valid()),
        spec(2, Valid(), stride=2),
        spec(3, SameUpper(), stride=2),
        spec(3, SameLower()),
        spec(3, Explicit(one, two), stride=3),
        spec(2, Explicit(two, one), dilation=2),
        spec(3, ExplicitOnnxPool(one, one, ceil_mode=True), stride=2),
        spec(5, Explicit(two, two), dilation=2, stride=2),
    ]


def model_of(op, fact: str) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    model.set_outputs(model.wire_node("y", op, [x]))
    return model


def run(op, isa, x: np.ndarray, fact: str) -> np.ndarray:
    plan = CpuPlan(model_of(op, fact), isa)
    assert [placement.how for placement in plan.explain().placements] == ["pool"]
    return plan.spawn().run([x])[0]


@pytest.mark.parametrize(("rank", "dtype"), [(1, "f32"), (2, "f32"), (3, "f32"), (2, "bf16")])
@pytest.mark.parametrize("layout", list(DataFormat), ids=lambda layout: layout.name)
def test_pools_of_every_layout_padding_and_stride(isa, layout, rank, dtype) -> None:
    kind = DatumType[dtype.upper()].numpy
    for spatial in SPATIAL[rank]:
        shape = layout.replaced((2,) * layout.rank(rank), 5, spatial)
        x = np.random.default_rng(0).standard_normal(shape).astype(kind)
        symbols = layout.replaced(("N",) * len(shape), "5", "DHW"[-rank:])
        fact = ",".join([*symbols, dtype])
        for spec in specs(layout, rank):
            wanted = reference_of(max_pool, MaxPool(spec), x)
            if wanted is None:
                continue
            np.testing.assert_array_equal(run(MaxPool(spec), isa, x, fact).astype("f8"), wanted)
            for include in (False, True):
                op = SumPool(spec, count_include_pad=include)
                found = run(op, isa, x, fact).astype("f8")
                wanted = reference_of(sum_pool, op, x)
                np.testing.assert_allclose(found, wanted, rtol=2e-5 if dtype == "f32" else 8e-3, atol=2e-6)


def reference_of(compute, op, x: np.ndarray) -> np.ndarray | None:
    """In float64; ``None`` where no window fits."""
    if any(int(plan.output) < 1 for plan in op.pool._plans(x.shape, op.pool.padding.ends)):
        return None
    with np.errstate(invalid="ignore"):
        return compute(op, x.astype("f8"))


def test_integers_infinities_and_what_is_not_a_number(isa) -> None:
    spec = PoolSpec(DataFormat.NCHW, (3, 3), Explicit((1, 1), (1, 1)), strides=(2, 2))
    for dtype in ("i8", "u8", "i32"):
        kind = DatumType[dtype.upper()].numpy
        ends = np.iinfo(kind)
        x = np.random.default_rng(1).integers(ends.min, ends.max, (1, 3, 9, 70), kind, endpoint=True)
        np.testing.assert_array_equal(run(MaxPool(spec), isa, x, f"1,3,9,70,{dtype}"), max_pool(MaxPool(spec), x))
        plain = SumPool(spec, normalize=False)
        np.testing.assert_array_equal(run(plain, isa, x, f"1,3,9,70,{dtype}"), sum_pool(plain, x))
    x = np.random.default_rng(2).choice(
        np.array([np.nan, np.inf, -np.inf, 1], "f4"), (1, 3, 9, 70), p=[0.1, 0.2, 0.6, 0.1]
    )
    np.testing.assert_array_equal(run(MaxPool(spec), isa, x, "1,3,9,70,f32"), max_pool(MaxPool(spec), x))


def test_a_batch_of_none_and_no_channels(isa) -> None:
    spec = PoolSpec(DataFormat.NHWC, (2, 2))
    for shape in [(0, 4, 4, 3), (1, 4, 4, 0)]:
        x = np.zeros(shape, "f4")
        found = run(MaxPool(spec), isa, x, "N,4,4,C,f32")
        assert found.shape == max_pool(MaxPool(spec), x).shape


@pytest.mark.parametrize("layout", [DataFormat.NCHW, DataFormat.HWC], ids=lambda layout: layout.name)
def test_places_of_the_largest_elements(isa, layout) -> None:
    """The first of equals, of what is not a number too; no place where a window has nothing but padding."""
    random = np.random.default_rng(3)
    of_ranks = [(1, "f32", "I64", 2), (2, "f32", "I32", 4), (2, "u8", "I64", 6), (3, "f64", "I64", 5)]
    for rank, dtype, indices, number in of_ranks:
        kind = DatumType[dtype.upper()].numpy
        for spatial, spec in product(SPATIAL[rank], [specs(layout, rank)[number]]):
            values = [0, 1, 2] if dtype == "u8" else [-np.inf, 0, 1, np.nan]
            x = random.choice(np.array(values, kind), layout.replaced((2,) * layout.rank(rank), 5, spatial))
            op = MaxPool(spec, indices=DatumType[indices])
            if reference_of(sum_pool, SumPool(spec, normalize=False), x) is None:
                continue
            wanted = max_pool(op, x)
            fact = ",".join([*layout.replaced(("N",) * x.ndim, "5", "DHW"[-rank:]), dtype])
            plan = CpuPlan(model_of(op, fact), isa)
            assert [placement.how for placement in plan.explain().placements] == ["pool"]
            for found, one in zip(plan.spawn().run([x]), wanted, strict=True):
                np.testing.assert_array_equal(found, one)
                assert found.dtype == one.dtype


@pytest.mark.parametrize("op", [MaxPool, SumPool])
@pytest.mark.parametrize("layout", [DataFormat.NCHW, DataFormat.NHWC], ids=lambda layout: layout.name)
def test_pools_of_what_a_convolution_gives_in_blocks_of_channels(isa, layout, op) -> None:
    first = layout is DataFormat.NCHW
    model, rng = TypedModel(), np.random.default_rng(2)
    x = model.add_source("x", parse_typed_fact("2,16,13,14,f32" if first else "2,13,14,16,f32", model.symbols))
    weights = rng.standard_normal((64, 16, 3, 3)).astype(np.float32)
    kernel = model.add_const("kernel", weights if first else np.ascontiguousarray(weights.transpose(2, 3, 1, 0)))
    bias = model.add_const("bias", np.zeros((), np.float32))
    form = KernelFormat.OIHW if first else KernelFormat.HWIO
    convolved = model.wire_node("conv", Conv(PoolSpec(layout, (3, 3), SameUpper()), form), [x, kernel, bias])
    spec = PoolSpec(layout, (3, 3), SameUpper(), strides=(2, 2))
    model.set_outputs(model.wire_node("pool", op(spec), convolved))
    given = rng.standard_normal((2, 16, 13, 14) if first else (2, 13, 14, 16)).astype(np.float32)
    (wanted,) = TypedSimplePlan(model.clone()).run([given])
    (found,) = CpuPlan(model, isa).spawn().run([given])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())
