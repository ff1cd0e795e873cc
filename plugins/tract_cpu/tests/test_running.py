"""Running sums and the best elements of rows, on every instruction set of this machine, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan

from tract_core.data import DatumType
from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops import cumsum, topk

SHAPES = [(0, 3), (3, 0), (1, 1), (9, 37), (150, 3), (2, 5, 70)]


def plan_of(op, isa, facts: list[str], constants=(), how: str = "") -> CpuPlan:
    model = TypedModel()
    inputs = [model.add_source(f"x{n}", parse_typed_fact(one, model.symbols)) for n, one in enumerate(facts)]
    inputs += [model.add_const(f"c{n}", one) for n, one in enumerate(constants)]
    model.set_outputs(model.wire_node("y", op, inputs))
    plan = CpuPlan(model, isa)
    assert [placement.how for placement in plan.explain().placements] == [how]
    return plan


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "u64"])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_are_added_in_the_order_of_the_reference(isa, dtype, exclusive, reverse) -> None:
    kind = DatumType[dtype.upper()].numpy
    for shape in SHAPES:
        x = (np.random.default_rng(0).standard_normal(shape) * 20).astype("i8" if dtype == "u64" else "f4").astype(kind)
        for axis in range(len(shape)):
            op = cumsum.CumSum(axis, exclusive, reverse)
            plan = plan_of(op, isa, [",".join([*"ABC"[: len(shape)], dtype])], how="running")
            np.testing.assert_array_equal(plan.spawn().run([x])[0], cumsum.reference(op, x))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i32", "u8", "bool"])
@pytest.mark.parametrize("largest", [False, True])
def test_the_best_elements_come_in_the_order_of_a_stable_sort(isa, dtype, largest) -> None:
    kind = DatumType[dtype.upper()].numpy
    for shape in [(1, 1), (9, 37), (150, 3), (2, 5, 70)]:
        x = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 9, shape).astype("f4")
        if DatumType[dtype.upper()].is_float():
            x[x == 4], x[x == 5], x[x == 6], x[x == 7] = np.nan, np.inf, -np.inf, -0.0
        x = x.astype(kind)
        for axis in range(len(shape)):
            for k in {0, 1, shape[axis] // 2, shape[axis]}:
                op, count = topk.Topk(axis, largest, k), np.array(k, "i8")
                plan = plan_of(op, isa, [",".join([*map(str, shape), dtype])], [count], how="topk")
                for found, wanted in zip(plan.spawn().run([x]), topk.reference(op, x, count), strict=True):
                    assert found.dtype == wanted.dtype
                    np.testing.assert_array_equal(found.astype("f8"), wanted.astype("f8"))  # of bf16, NaN equals none


def test_a_number_that_was_not_announced_gives_the_error_of_the_reference(isa) -> None:
    plan = plan_of(topk.Topk(0, largest=True, k=2), isa, ["3,f32", "i64"], how="topk")
    x = np.array([1, 3, 2], "f4")
    np.testing.assert_array_equal(plan.spawn().run([x, np.array(2)])[0], [3, 2])
    with pytest.raises(RunError, match="elements of axis 0 were asked for"):
        plan.spawn().run([x, np.array(4)])
