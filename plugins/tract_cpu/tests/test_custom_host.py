"""Operators of others that stay on the host: with the reason, computed as they say, and never half."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import custom_hosts as hosts
import custom_operators as custom
import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import of_this_machine

from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.plugins.registry import Registry

REASONS: list[tuple[TypedOp, str, str]] = [
    (hosts.Branch(), "B,3,f32", "its meaning looks at values: `if x.sum() > 0`"),
    (hosts.Caught(), "B,3,f32", "its meaning looks at values: `return x * 2 if (x > 0).any() else x`"),
    (
        hosts.Solved(),
        "B,3,f32",
        "its meaning calls numpy.linalg.solve, which native code does not know",
    ),
    (hosts.Sorted(), "B,3,f32", "its meaning calls numpy.sort, which native code does not know"),
    (hosts.Noise(), "B,3,f32", "its meaning draws random numbers: numpy.random.normal"),
    (hosts.OwnNoise(), "B,3,f32", "its meaning may read the field `generator`, a Generator, which may change"),
    (hosts.Written(), "B,3,f32", "its meaning writes into an array: `y[y < 0] = 0`"),
    (hosts.SeenTwice(), "3,3,f32", "its meaning changes an array in place that others see: `y += 1`"),
    (hosts.Counted(), "B,3,f32", "its meaning changes the global `CALLS`"),
    (hosts.CountedInside(), "B,3,f32", "its meaning changes `calls`, which is not its own"),
    (hosts.Remembered(), "B,3,f32", "its meaning sets the attribute `last`"),
    (hosts.Listed(), "B,3,f32", "its meaning reads `FACTORS`, a list, which may change"),
    (hosts.Scaled(), "B,3,f32", "its meaning reads the global `SCALE`, which a function of its module changes"),
    (hosts.Timed(), "B,3,f32", "its meaning calls time.monotonic, which native code does not know"),
    (hosts.Printed(), "B,3,f32", "its meaning calls print, which native code does not know"),
    (
        hosts.RowByRow(),
        "B,3,f32",
        "its meaning needs the number of a symbolic size: "
        "`return np.stack([row - row.mean() for row in x]) if len(x) else x`",
    ),
    (
        hosts.Places(),
        "B,3,f32",
        "its meaning needs the number of a symbolic size: `return x + np.arange(x.shape[0], dtype=x.dtype)[:, None]`",
    ),
    (
        hosts.EvenRows(),
        "B,3,f32",
        "its meaning needs the number of a symbolic size: `return x * 2 if x.shape[0] % 2 == 0 else x`",
    ),
    (hosts.OtherType(), "B,3,f32", "its meaning gives B,3,f64, its output_facts say B,3,f32"),
    (hosts.HalfSum(), "B,3,f16", "its meaning sums float16 in float16, which NumPy rounds in an order of its own"),
    (hosts.Bits(), "B,3,f32", "its meaning uses `.view` of an array, which native code does not know"),
    (
        hosts.Picked(),
        "B,3,f32",
        "its meaning picks elements by an array: `return x[:, np.array([2, 0, 1])]`",
    ),
]


@cache
def shared() -> Registry:
    return custom.registry()


def plan_of(op: TypedOp, fact: str) -> CpuPlan:
    model = TypedModel(registry=shared())
    model.set_outputs(model.wire_node("y", op, [model.add_source("x", parse_typed_fact(fact, model.symbols))]))
    return CpuPlan(model, of_this_machine()[-1])


def why(plan: CpuPlan) -> str:
    (only,) = plan.explain().placements
    assert only.how == "numpy"
    return only.why


def numbers(shape: Sequence[int], dtype: str = "f4") -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(dtype)


WANTED = {
    hosts.Branch: lambda x: x * 2 if x.sum() > 0 else x,
    hosts.Caught: lambda x: x * 2,
    hosts.Solved: lambda x: x,
    hosts.Sorted: lambda x: np.sort(x, axis=-1),
    hosts.Noise: lambda x: x,
    hosts.OwnNoise: lambda x: x,
    hosts.Written: lambda x: np.maximum(x * 2, 0),
    hosts.SeenTwice: lambda x: x * 2 + 1,
    hosts.Counted: lambda x: x * 2,
    hosts.CountedInside: lambda x: x * 2,
    hosts.Remembered: lambda x: x * 2,
    hosts.Listed: lambda x: x * 2,
    hosts.Scaled: lambda x: x * 2,
    hosts.Timed: lambda x: x,
    hosts.Printed: lambda x: x * 2,
    hosts.RowByRow: lambda x: x - x.mean(axis=1, keepdims=True),
    hosts.Places: lambda x: x + np.arange(len(x))[:, None],
    hosts.EvenRows: lambda x: x,
    hosts.HalfSum: lambda x: x.sum(axis=-1),
    hosts.Bits: lambda x: x,
    hosts.Picked: lambda x: x[:, [2, 0, 1]],
}
"""What comes out of a run of three rows, by NumPy in f64; but for those that give what they do not announce."""


@pytest.mark.parametrize(("op", "fact", "reason"), REASONS, ids=lambda one: str(one)[:20])
def test_the_reason_is_told_and_the_numbers_are_those_of_numpy(op, fact, reason) -> None:
    plan = plan_of(op, fact)
    assert why(plan) == reason
    if type(op) in WANTED:
        x = numbers((3, 3), fact.rpartition(",")[2].replace("f32", "f4").replace("f16", "f2"))
        (found,) = plan.spawn().run([x])
        tolerance = 2.0**-7 if isinstance(op, (hosts.Bits, hosts.HalfSum)) else 1e-6
        np.testing.assert_allclose(found, WANTED[type(op)](x.astype(np.float64)), rtol=tolerance, atol=tolerance)


def test_an_input_is_not_changed_in_place() -> None:
    plan = plan_of(hosts.InPlace(), "B,3,f32")
    assert why(plan) == "its meaning changes an array in place that others see: `x += 1`"
    with pytest.raises(RunError, match="the operator writes to its inputs"):
        plan.spawn().run([numbers((2, 3))])


def test_what_a_meaning_raises_is_no_error_when_the_model_is_prepared() -> None:
    plan = plan_of(hosts.Raises(), "B,3,f32")
    assert why(plan) == "its meaning raises NotImplementedError when it is traced: not on this machine"
    with pytest.raises(RunError, match="NotImplementedError: not on this machine"):
        plan.spawn().run([numbers((2, 3))])


def test_where_numpy_gives_what_the_processor_gives_it_stays_with_numpy() -> None:
    plan = plan_of(hosts.Whole(), "B,3,f32")
    stops_at_ends = of_this_machine()[-1].architecture == "aarch64"
    if stops_at_ends:  # as native code does
        assert [one.how for one in plan.explain().placements] == ["map"]
    else:
        assert why(plan).startswith("native code would give ")


def test_a_meaning_that_changes_something_is_not_called_to_find_that_out(capsys) -> None:
    before = hosts.CALLS
    plan_of(hosts.Counted(), "B,4,f32")
    plan_of(hosts.Printed(), "B,4,f32")
    assert before == hosts.CALLS
    assert capsys.readouterr().out == ""


def test_values_that_change_in_between_are_seen() -> None:
    plan, x = plan_of(hosts.Scaled(), "B,3,f32"), numbers((2, 3))
    try:
        hosts.set_scale(5.0)
        np.testing.assert_allclose(plan.spawn().run([x])[0], x.astype(np.float64) * 5, rtol=1e-6)
    finally:
        hosts.set_scale(2.0)


@pytest.mark.parametrize("kind", ["complex_f32", "string"])
def test_types_without_functions_stay_on_the_host(kind) -> None:
    assert why(plan_of(hosts.Picked(), f"B,3,{kind}")) == (
        f"its meaning is of {kind}, of which native code knows no functions"
    )


def test_sizes_that_nothing_makes_equal_stay_on_the_host() -> None:
    model = TypedModel(registry=shared())
    x, y = (model.add_source(name, parse_typed_fact(f"{name},f32", model.symbols)) for name in ("N", "M"))
    model.set_outputs(model.wire_node("y", custom.Huber(), [x, y]))
    plan = CpuPlan(model, of_this_machine()[-1])
    assert why(plan).startswith("its meaning ")
    x, y = numbers((3,)), numbers((3,)) + 1
    np.testing.assert_allclose(plan.spawn().run([x, y])[0], [0.5, 0.5, 0.5], rtol=1e-5)
