"""Operators that are computed as several others: sums of many factors, diagonals, quantised products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import Isa

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv
from tract_core.ops.conv import reference as convolved
from tract_core.ops.einsum import EinSum
from tract_core.ops.einsum import reference as summed
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec


def model_of(op: TypedOp, facts: list[str], constants: dict[int, Any] | None = None) -> TypedModel:
    """The operator on inputs, some of which are part of the model."""
    model, known = TypedModel(), constants or {}
    inputs = [
        model.add_const(f"c{slot}", known[slot])
        if slot in known
        else model.add_source(f"i{slot}", parse_typed_fact(fact, model.symbols))
        for slot, fact in enumerate(facts)
    ]
    model.set_outputs(model.wire_node("op", op, inputs))
    return model


SUMS = [
    "ab,bc,cd->ad",
    "ab,ab,b->a",
    "a,b,c->cab",
    "abc,c->a",
    "ab,cd->da",
    "ab->",
    "aab,b->a",
    "aba->b",
    "aa,a->",
    "aab,->b",
]


@pytest.mark.parametrize("kind", [DatumType.F32, DatumType.F16, DatumType.I16])
def test_sums_of_products_of_any_factors_are_those_of_numpy(isa: Isa, kind: DatumType) -> None:
    """With sizes 0, 1 and more; sums of integers wrap around in i32, those of half floats are rounded once."""
    rng = np.random.default_rng(0)
    acc = DatumType.I32 if kind.is_integer() else DatumType.F32
    for text in SUMS:
        axes = AxesMapping.parse(text)
        facts = [",".join([*term.upper(), kind.short]) for term in axes.inputs]
        plan = CpuPlan(model_of(EinSum(axes, acc), facts), isa)
        if isa.half or kind is not DatumType.F16:
            assert [one.how for one in plan.explain().placements] == ["kernels"], text
        for sizes in ({"a": 3, "b": 5, "c": 2, "d": 7}, {"a": 1, "b": 1, "c": 4, "d": 1}, dict.fromkeys("abcd", 0)):
            shapes = [[sizes[name] for name in term] for term in axes.inputs]
            scale = 1000 if kind.is_integer() else 1
            given: list[Any] = [np.asarray(rng.standard_normal(shape) * scale, kind.numpy) for shape in shapes]
            (found,) = plan.spawn().run(given)
            exact = np.int64 if kind.is_integer() else np.float64
            wanted: Any = np.einsum(text, *(one.astype(exact) for one in given))
            if kind.is_integer():
                np.testing.assert_array_equal(found, wanted.astype(np.int32))
            else:
                near = 1e-3 if kind is DatumType.F16 else 1e-5
                np.testing.assert_allclose(found, wanted, rtol=near, atol=near)


def test_floats_are_summed_in_the_type_that_is_asked_for(isa: Isa) -> None:
    """In f32, 2**24 + 1 would be 2**24."""
    plan = CpuPlan(model_of(EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F64), ["2,3,f32", "3,1,f32"]), isa)
    assert [one.how for one in plan.explain().placements] == ["kernels"]
    ones = np.ones((3, 1), "f4")
    (found,) = plan.spawn().run([np.array([[2**24, 1, -(2**24)], [1, 2, 3]], "f4"), ones])
    np.testing.assert_array_equal(found, np.array([[1], [6]], "f4"))


def test_a_diagonal_is_a_view(isa: Isa) -> None:
    model = model_of(EinSum(AxesMapping.parse("aba->ba"), DatumType.F32), ["A,B,A,f32"])
    model.set_outputs(model.wire_node("twice", Add(), [*model.outputs, *model.outputs]))
    plan = CpuPlan(model, isa)
    assert [one.how for one in plan.explain().placements] == ["view", "map"]
    x = np.random.default_rng(0).standard_normal((4, 3, 4)).astype("f4")
    np.testing.assert_array_equal(plan.spawn().run([x])[0], 2 * np.einsum("aba->ba", x))


@pytest.mark.parametrize("text", ["ab,ab->ab", "a,ac->ca", "m,n->nm", "ab,b->ba"])
def test_where_nothing_is_summed_elements_are_multiplied_with_what_is_behind(isa: Isa, text: str) -> None:
    axes = AxesMapping.parse(text)
    model = model_of(EinSum(axes, DatumType.F32), [",".join([*term.upper(), "f32"]) for term in axes.inputs])
    model.set_outputs(model.wire_node("twice", Add(), [*model.outputs, *model.outputs]))
    plan, sizes = CpuPlan(model, isa), {"a": 3, "b": 35, "c": 2, "m": 5, "n": 17}
    assert [(one.ops, one.how) for one in plan.explain().placements] == [(("EinSum", "Add"), "map")]
    rng = np.random.default_rng(0)
    given = [rng.standard_normal([sizes[name] for name in term]).astype("f4") for term in axes.inputs]
    np.testing.assert_array_equal(plan.spawn().run(given)[0], 2 * np.einsum(text, *given))


def test_an_axis_of_size_1_is_left_out_of_a_diagonal(isa: Isa) -> None:
    x = np.random.default_rng(0).standard_normal((1, 3, 3)).astype("f4")
    plan = CpuPlan(model_of(EinSum(AxesMapping.parse("baa->a"), DatumType.F32), ["1,A,A,f32"]), isa)
    assert [one.how for one in plan.explain().placements] == ["view"]
    np.testing.assert_array_equal(plan.spawn().run([x])[0], np.einsum("baa->a", x))


def quantized_conv(outputs: DatumType, group: int) -> tuple[Conv, list[Any], list[str]]:
    """A convolution of 40 channels into 20, its inputs, and their facts."""
    rng = np.random.default_rng(0)
    pool = PoolSpec(DataFormat.NCHW, (3, 3), Explicit((1, 1), (0, 1)), strides=(2, 1))
    given: list[Any] = [
        rng.integers(0, 255, (2, 40, 6, 7), "u1"),
        rng.integers(-128, 127, (20, 40 // group, 3, 3), "i1"),
        rng.integers(-999, 999, 20, "i4"),
        np.array(120, "u1"),
        np.array(0.37, "f4"),
        rng.integers(-9, 9, 20, "i1"),
        rng.uniform(0.01, 0.2, 20).astype("f4"),
        np.array(3, outputs.numpy),
        np.array(11.5, "f4"),
    ]
    facts = [",".join([*map(str, one.shape), DatumType.from_numpy(one.dtype).short]) for one in given]
    return Conv(pool, group=group, q_output=outputs), given, ["N,40,H,W,u8", *facts[1:]]


@pytest.mark.parametrize("group", [1, 4])
def test_quantised_convolutions_give_the_integers_of_the_reference(isa: Isa, group: int) -> None:
    """With parameters of the model, among them zero points of 0, and of the run, one of which is not a number."""
    op, given, facts = quantized_conv(DatumType.U8, group)
    for zeros in (given[5], np.zeros((), "i1")):
        given[5] = zeros
        plan = CpuPlan(model_of(op, facts, dict(enumerate(given[1:], start=1))), isa)
        assert "Requantize" in plan.explain().placements[-1].ops
        np.testing.assert_array_equal(plan.spawn().run(given[:1])[0], convolved(op, *given))
    op, given, facts = quantized_conv(DatumType.I32, group)
    plan = CpuPlan(model_of(op, facts), isa)
    assert [one.how for one in plan.explain().placements] == ["kernels"]
    given[6][3:5] = np.nan, 0
    np.testing.assert_array_equal(plan.spawn().run(given)[0], convolved(op, *given))


def test_what_is_written_out_is_seen_as_one(isa: Isa) -> None:
    op, given, facts = quantized_conv(DatumType.I8, 1)
    plan, seen = CpuPlan(model_of(op, facts), isa), {}
    plan.spawn_observed(lambda part, tensors: seen.update({part.nodes: [one.copy() for one in tensors.values()]})).run(
        given
    )
    (shown,) = seen.values()
    np.testing.assert_array_equal(shown[0], convolved(op, *given))
    assert [timing.part.ops(plan.model) for timing in plan.timed_run(given)] == [("Conv",)]


def test_quantised_products_give_the_integers_of_the_reference(isa: Isa) -> None:
    """Zero points and scales along axes, of the data and of the result."""
    rng = np.random.default_rng(0)
    op = EinSum(AxesMapping.parse("bmk,nk,n,m,m,k,n,,bn->bmn"), DatumType.I32, DatumType.U8)
    given: list[Any] = [
        rng.integers(-128, 127, (2, 5, 33), "i1"),
        rng.integers(0, 255, (21, 33), "u1"),
        rng.integers(-999, 999, 21, "i4"),
        rng.integers(-9, 9, 5, "i1"),
        rng.uniform(0.01, 0.2, 5).astype("f4"),
        rng.integers(0, 255, 33, "u1"),
        rng.uniform(0.01, 0.2, 21).astype("f4"),
        np.array(100, "u1"),
        rng.uniform(0.5, 2, (2, 21)).astype("f4"),
    ]
    kinds = [DatumType.from_numpy(one.dtype).short for one in given]
    symbolic = [",".join([*term.upper(), kind]) for term, kind in zip(op.axes.inputs, kinds, strict=True)]
    fixed = [",".join([*map(str, one.shape), kind]) for one, kind in zip(given, kinds, strict=True)]
    for facts, constants in ((symbolic, {}), (fixed, {slot: given[slot] for slot in (1, 2, 3, 5, 7)})):
        plan = CpuPlan(model_of(op, facts, constants), isa)
        assert [one.how for one in plan.explain().placements] == ["kernels"]
        inputs = [one for slot, one in enumerate(given) if slot not in constants]
        np.testing.assert_array_equal(plan.spawn().run(inputs)[0], summed(op, *given))
