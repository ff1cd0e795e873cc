"""Quantised models end in products of integers, with all that is behind them computed along.

Scales are powers of two, so that what the reference computes in f32 is exact, and results are equal to the last step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tract_cpu.native_form.native_form import native_form
from tract_cpu.plan import CpuPlan
from tract_llvm.elements.on_steps import requantize as element_of_sums
from tract_llvm.elements.on_steps import sum_of_steps as element_of_bytes
from tract_llvm.isa import Isa
from tract_llvm.llvm_only.on_steps import Requantize, SumOfSteps, requantize, sum_of_steps
from tract_llvm.testing.elements import ElementRunner

from tract_core.data import Constant, DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.declutter import declutter
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, Reshape
from tract_core.ops.binary import Add, Binary, Mul, Sub
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.conv import Conv
from tract_core.ops.downsample import Downsample
from tract_core.ops.einsum import EinSum
from tract_core.ops.if_then_else_wiring import wire_if
from tract_core.ops.pool import MaxPool
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.quantize import DequantizeLinear, LookupTable, QuantizeLinear, wire_dynamic_quantize
from tract_core.ops.submodel import SubmodelOp
from tract_core.ops.wiring import wire_binary, wire_one
from tract_core.runtime.plan import TypedSimplePlan

U8, I8, F32 = DatumType.U8, DatumType.I8, DatumType.F32


class Quantised:
    """A model that grows: tensors are dequantised before they are computed with, and quantised again behind."""

    def __init__(self, fact: str) -> None:
        self.model = TypedModel()
        self.x = self.model.add_source("x", parse_typed_fact(fact, self.model.symbols))
        self.random, self.count = np.random.default_rng(0), 0

    def named(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    def const(self, array: Any) -> OutletId:
        return self.model.add_const(self.named("c"), np.asarray(array))

    def numbers(self, x: OutletId, scale: Any, zero: Any, axis: int = 0) -> OutletId:
        kind = self.model.outlet_fact(x).datum_type.storage
        parameters = self.const(np.asarray(scale, "f4")), self.const(np.asarray(zero, kind.numpy))
        return wire_one(self.model, self.named("numbers"), DequantizeLinear(F32, axis), x, *parameters)

    def steps(self, x: OutletId, scale: float, zero: int, kind: DatumType = U8) -> OutletId:
        parameters = self.const(np.float32(scale)), self.const(np.array(zero, kind.numpy))
        return wire_one(self.model, self.named("steps"), QuantizeLinear(kind), x, *parameters)

    def weights(self, *shape: int, axis: int = 0) -> OutletId:
        """Some that vary by output channel."""
        scale = 2.0 ** self.random.integers(-8, -4, shape[axis])
        integers = self.const(self.random.integers(-128, 127, shape, "i1"))
        return self.numbers(integers, scale, np.zeros(shape[axis], "i1"), axis)

    def conv(self, x: OutletId, channels: tuple[int, int], size: int = 3, **pool: Any) -> OutletId:
        ends = (size // 2, size // 2)
        spec = PoolSpec(DataFormat.NCHW, (size, size), Explicit(ends, ends), **pool)
        bias = self.const(self.random.integers(-99, 99, channels[1]).astype("f4") / 4)
        kernel = self.weights(channels[1], channels[0], size, size)
        return wire_one(self.model, self.named("conv"), Conv(spec), x, kernel, bias)

    def plan(self, output: OutletId, isa: Isa) -> CpuPlan:
        self.model.set_outputs([output])
        declutter(self.model)
        return CpuPlan(self.model, isa)

    def check(self, output: OutletId, isa: Isa, x: Any) -> list[tuple[str, ...]]:
        """Compare with the reference. Returns which operators were computed together."""
        plan = self.plan(output, isa)
        (found,), (wanted,) = plan.spawn().run([x]), TypedSimplePlan(self.model).spawn().run([x])
        np.testing.assert_array_equal(found, wanted)
        assert len(np.unique(wanted)) > 20 or wanted.size < 100
        return [one.ops for one in plan.explain().placements]


@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize(("kind", "zero"), [(U8, 0), (U8, 117), (I8, -128), (I8, 5)])
def test_a_convolution_between_numbers_is_one_of_integers(isa: Isa, kind: DatumType, zero: int, batch: int) -> None:
    q = Quantised(f"N,5,H,W,{kind.short}")
    y = q.steps(q.conv(q.numbers(q.x, 0.25, zero), (5, 19), strides=(2, 1)), 8.0, 100)
    low, high = np.iinfo(kind.numpy).min, np.iinfo(kind.numpy).max
    x = q.random.integers(low, high, (batch, 5, 7, 6), kind.numpy, endpoint=True)
    assert q.check(y, isa, x)[-1] == ("Conv", "Requantize")


def test_a_block_with_a_residual_writes_bytes_only(isa: Isa) -> None:
    """The sum is computed of the bytes of both sides, in the kernel of the convolution before it."""
    q = Quantised("1,33,9,8,u8")
    x = q.numbers(q.x, 0.25, 3)
    inner = q.numbers(q.steps(q.conv(x, (33, 20)), 16.0, 0), 16.0, 0)
    outer = q.numbers(q.steps(q.conv(inner, (20, 33), 1), 64.0, 120), 64.0, 120)
    y = q.steps(wire_one(q.model, "sum", Add(), outer, x), 64.0, 10)
    groups = q.check(y, isa, q.random.integers(0, 255, (1, 33, 9, 8), "u1"))
    assert [one for one in groups if "Requantize" in one] == [
        ("Conv", "Requantize"),
        ("EinSum", "Requantize", "SumOfSteps"),
    ]


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("to", [U8, I8])
@pytest.mark.parametrize("op", [Add(), Sub()], ids=str)
def test_sums_of_bytes_become_steps_at_once(isa: Isa, op: Binary, to: DatumType, rows: int) -> None:
    """Of tensors in two kinds of steps, one of which stretches: halves to even, stopped at the ends."""
    q = Quantised("B,37,u8")
    row = q.const(q.random.integers(-128, 127, (1, 37), "i1", endpoint=True))
    numbers = wire_one(q.model, "sum", op, q.numbers(q.x, 0.25, 77), q.numbers(row, 0.5, -3))
    given = q.random.integers(0, 255, (rows, 37), "u1", endpoint=True)
    assert q.check(q.steps(numbers, 0.5, 9, to), isa, given) == [("SumOfSteps",)]


def test_tables_of_bytes_are_read_between_convolutions_as_they_lie(isa: Isa) -> None:
    """In blocks, with the border that the next one wants, whose zeros are no entries of the table."""
    q = Quantised("2,5,9,8,u8")
    table = Constant(q.random.integers(0, 255, 256, "u1", endpoint=True))
    x = q.steps(q.conv(q.numbers(q.x, 0.25, 3), (5, 19)), 16.0, 100)
    x = wire_one(q.model, "table", LookupTable(table), x)
    y = q.steps(q.conv(q.numbers(x, 0.25, 0), (19, 7)), 16.0, 100)
    groups = q.check(y, isa, q.random.integers(0, 255, (2, 5, 9, 8), "u1"))
    assert sorted(groups) == [("Conv", "Requantize"), ("Conv", "Requantize"), ("LookupTable",), ("Pad",)]


def test_pools_and_strides_stay_on_bytes(isa: Isa) -> None:
    q = Quantised("1,18,9,9,u8")
    pool = MaxPool(PoolSpec(DataFormat.NCHW, (3, 3), Explicit((1, 1), (1, 1)), strides=(2, 2)))
    y = wire_one(q.model, "pool", pool, q.numbers(q.x, 0.25, 3))
    y = wire_one(q.model, "fewer", Downsample(3, 2), q.numbers(q.steps(y, 0.25, 3), 0.25, 3))
    y = q.steps(q.conv(y, (18, 7), 1), 16.0, 20)
    groups = q.check(y, isa, q.random.integers(0, 255, (1, 18, 9, 9), "u1"))
    assert not {"Dequantize", "Quantize"} & {name for group in groups for name in group}


def test_what_is_stretched_stays_in_bytes(isa: Isa) -> None:
    """Elements that are repeated along the last axis, in front of a convolution, in the same steps as before."""
    q = Quantised("1,5,6,4,u8")
    x = wire_one(q.model, "apart", AddAxis(4), q.numbers(q.x, 0.25, 3))
    x = wire_one(q.model, "wide", MultiBroadcastTo((1, 5, 6, 4, 2)), x)
    x = wire_one(q.model, "merged", Reshape(3, (4, 2), (8,)), x)
    y = q.steps(q.conv(q.numbers(q.steps(x, 0.25, 3), 0.25, 3), (5, 7)), 16.0, 20)
    groups = q.check(y, isa, q.random.integers(0, 255, (1, 5, 6, 4), "u1"))
    assert not {"Dequantize", "Quantize"} & {name for group in groups for name in group}


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_product_between_numbers_is_one_of_integers(isa: Isa, rows: int, axis: int) -> None:
    """Weights on either side, their scales along the axis of the output."""
    q = Quantised("B,37,u8")
    weights = q.weights(*((37, 21) if axis else (21, 37)), axis=axis)
    sums = EinSum(AxesMapping.parse("bk,kn->bn" if axis else "bk,nk->bn"), F32)
    y = q.steps(wire_one(q.model, "sums", sums, q.numbers(q.x, 0.5, 77), weights), 32.0, 90, I8)
    groups = q.check(y, isa, q.random.integers(0, 255, (rows, 37), "u1"))
    assert ("EinSum", "Add", "Requantize") in groups or ("EinSum", "Requantize") in groups


def test_scales_along_the_summed_axis_leave_the_product_on_numbers(isa: Isa) -> None:
    q = Quantised("3,37,u8")
    sums = EinSum(AxesMapping.parse("bk,kn->bn"), F32)
    y = q.steps(wire_one(q.model, "sums", sums, q.numbers(q.x, 0.5, 77), q.weights(37, 21)), 32.0, 90)
    groups = q.check(y, isa, q.random.integers(0, 255, (3, 37), "u1"))
    assert all("Requantize" not in one for one in groups)


def test_sums_that_may_not_fit_stay_on_numbers(isa: Isa) -> None:
    q = Quantised("1,66400,u8")
    weights = q.numbers(q.const(np.full((66400, 1), 127, "i1")), 1.0, 0)
    sums = wire_one(q.model, "sums", EinSum(AxesMapping.parse("bk,kn->bn"), F32), q.numbers(q.x, 1.0, 0), weights)
    plan = q.plan(q.steps(sums, 2.0**25, 0), isa)
    assert "Requantize" not in {node.op.name for node in plan.model.live_nodes()}
    assert plan.spawn().run([np.full((1, 66400), 255, "u1")])[0] == round(66400 * 255 * 127 / 2**25)


@pytest.mark.parametrize("zero", [0, 3])
def test_weights_are_copied_only_where_they_are_no_distances_yet(zero: int) -> None:
    """Weights of -128 .. 127 are 2 bytes each from 3 on; from 0 on they stay where they are."""
    q, integers = Quantised("5,37,u8"), np.arange(37 * 32).reshape(37, 32).astype("i1")
    weights = q.numbers(q.const(integers), 0.5, zero)
    sums = wire_one(q.model, "sums", EinSum(AxesMapping.parse("bk,kn->bn"), F32), q.numbers(q.x, 0.5, 77), weights)
    q.model.set_outputs([q.steps(sums, 32.0, 90)])
    values = [outlet.fact.constant for node in native_form(declutter(q.model)).nodes for outlet in node.outputs]
    (found,) = [one for one in values if one is not None and one.shape == integers.shape]
    assert np.shares_memory(found, integers) is (zero == 0)
    assert found.dtype == ("i2" if zero else "i1")
    np.testing.assert_array_equal(found, integers.astype("i2") - zero)


def dynamic(q: Quantised, columns: int) -> OutletId:
    """A product as dynamic quantisation has it: of what is quantised by its own range."""
    model = q.model
    x, scale, zero = wire_dynamic_quantize(model, "dynamic", q.x)
    zero = wire_one(model, "zero.wide", Cast(DatumType.I32), zero)
    far = wire_binary(model, "far", Sub(), wire_one(model, "x.wide", Cast(DatumType.I32), x), zero)
    weights = q.const(q.random.integers(-128, 127, (37, columns), "i1"))
    sums = wire_one(model, "sums", EinSum(AxesMapping.parse("brk,kn->brn"), DatumType.I32), far, weights)
    real = wire_binary(model, "real", Mul(), wire_one(model, "float", Cast(F32), sums), scale)
    return wire_one(model, "biased", Add(), real, q.const(np.float32([[q.random.standard_normal(columns)]])))


def test_the_zero_point_of_a_run_is_taken_off_behind_the_product(isa: Isa) -> None:
    """The small tensors that this takes are computed before, so that all is done before anything is written."""
    q = Quantised("1,R,37,f32")
    y = dynamic(q, 21)
    plan = q.plan(y, isa)
    x = q.random.standard_normal((1, 6, 37)).astype("f4")
    (found,), (wanted,) = plan.spawn().run([x]), TypedSimplePlan(q.model).spawn().run([x])
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    assert ("EinSum", "Sub", "Cast", "Mul", "Add") in [one.ops for one in plan.explain().placements]
    reduced = [one.ops for one in plan.explain().placements if "Reduce" in one.ops]
    assert [one.count("Reduce") for one in reduced] == [2]  # the least and the greatest are found together


@pytest.mark.parametrize("depth", [1, 2])
def test_products_in_bodies_are_of_integers_too(isa: Isa, depth: int) -> None:
    """Here in the branches of a choice, in a model or two; the one around them has no tensor of bytes itself."""

    def branch(zero: int) -> TypedModel:
        q = Quantised("3,37,f32")
        sums = EinSum(AxesMapping.parse("bk,kn->bn"), F32)
        x = q.numbers(q.steps(q.x, 0.5, zero), 0.5, zero)
        y = q.steps(wire_one(q.model, "sums", sums, x, q.weights(37, 21, axis=1)), 32.0, 90)
        q.model.set_outputs([q.numbers(y, 32.0, 90)])
        return q.model

    model = TypedModel()
    c, x = (
        model.add_source(name, parse_typed_fact(fact, model.symbols))
        for name, fact in (("c", "bool"), ("x", "3,37,f32"))
    )
    model.set_outputs(wire_if(model, "choice", c, (branch(77), [x]), (branch(130), [x])))
    for _ in range(depth):
        outer = TypedModel()
        inputs = [outer.add_source(name, model.outlet_fact(one)) for name, one in zip("cx", model.inputs, strict=True)]
        outer.set_outputs(outer.wire_node("inner", SubmodelOp(model), inputs))
        model = outer
    plan = CpuPlan(model, isa)
    given = np.random.default_rng(1).integers(-100, 100, (3, 37)).astype("f4")
    for condition in (True, False):
        arrays = [np.array(condition), given]
        (found,), (wanted,) = plan.spawn().run(arrays), TypedSimplePlan(model).spawn().run(arrays)
        np.testing.assert_array_equal(found, wanted)
    groups = [one.ops for one in plan.explain().placements]
    assert sum("EinSum" in one and "Requantize" in one for one in groups) == 2


def test_a_model_without_quantised_tensors_is_left_as_it_is() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("3,4,f32", model.symbols))
    model.set_outputs(model.wire_node("sum", EinSum(AxesMapping.parse("ab->a"), F32), [x]))
    assert native_form(model) is model


@pytest.mark.parametrize("to", [U8, I8])
def test_sums_are_rounded_exactly_in_float64(elements: ElementRunner, to: DatumType) -> None:
    """Halves go to the even side only where they are halves: 5 * f32(0.1) is none, though its product in f32 is."""
    x = np.concatenate([np.arange(-4000, 4000), [2**23, -(2**23), 2**31 - 1, -(2**31)]]).astype("i4")
    for factor in (0.1, 0.5, 1 / 3, 7.25, -0.0125, 0.0):
        given = [x, *(np.full_like(x, np.float32(one), "f8") for one in (factor, 0.25)), np.full_like(x, 3, to.numpy)]
        found = elements(lambda *values: element_of_sums(Requantize(to), *values), tuple(given), "i4")
        np.testing.assert_array_equal(found, requantize(Requantize(to), *given))


def test_sums_are_rounded_to_a_neighbour_in_float32(elements: ElementRunner) -> None:
    rng = np.random.default_rng(0)
    x, factor = rng.integers(-(2**24), 2**24, 9999, "i4"), (10.0 ** rng.uniform(-7, -4, 9999)).astype("f4")
    given = (x, factor, rng.uniform(-9, 9, 9999).astype("f4"), np.full_like(x, 3, "u1"))
    found = elements(lambda *values: element_of_sums(Requantize(U8), *values), given, "i4")
    exact = np.clip(x * factor.astype("f8") + given[2] + 3, 0, 255)
    assert np.abs(found - exact).max() < 0.5001


@pytest.mark.parametrize("to", [U8, I8])
def test_sums_of_bytes_stop_at_the_ends_however_large_they_are(elements: ElementRunner, to: DatumType) -> None:
    x, y = (one.ravel() for one in np.meshgrid(np.arange(256, dtype="u1"), np.arange(-128, 128, 16, dtype="i1")))
    for factors in ((0.5, 0.25, 3.0), (-(2.0**40), 2.0**40, 0.5), (2.0**99, -(2.0**99), -1.0), (2.0**-140, 0.0, -0.5)):
        first, second, offset = (np.full(x.shape, one, "f4") for one in factors)
        given = (x, first, y, second, offset, np.full(x.shape, 100, to.numpy))
        found = elements(lambda *values: element_of_bytes(SumOfSteps(to), *values), given, "i4", 16)
        np.testing.assert_array_equal(found, sum_of_steps(SumOfSteps(to), *given))
