"""Sizes as numbers, ranges of known length, and shapes that must be what a file says."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import of_this_machine

from tract_core.data import SymbolicArray
from tract_core.dims import Dim, symbol
from tract_core.errors import RunError
from tract_core.model.const import Const
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.check import CheckShape
from tract_core.ops.elementwise import Neg
from tract_core.ops.non_zero import NonZero
from tract_core.ops.range import Range
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.runtime.reference import ReferenceRuntime

BEST = of_this_machine()[-1]


def range_of(length: Dim, kind: str) -> TypedModel:
    """The second input says how long the result is announced to be."""
    model = TypedModel()
    bounds = [model.add_source(name, parse_typed_fact(kind)) for name in ("start", "end", "step")]
    like = model.add_source("like", parse_typed_fact(f"N,{kind}", model.symbols))
    numbers = model.wire_node("numbers", Range(length), bounds)
    model.set_outputs(model.wire_node("sum", Add(), [*numbers, like]))
    return model


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        ("i64", (0, 9000, 1)),
        ("i64", (5, -6, -3)),
        ("i64", (3, 3, 2)),
        ("i64", (-(2**63), -(2**63) + 5, 2)),
        ("i64", (2**63 - 1, 2**63 - 9, -4)),
        ("u8", (250, 255, 2)),
        ("f32", (0.5, 3.1, 0.1)),
        ("f32", (1, -1, -0.25)),
        ("f64", (0, 1, 0.1)),
        ("bf16", (0, 300, 1)),
    ],
    ids=str,
)
def test_ranges_are_those_of_the_reference(isa, kind, bounds) -> None:
    dtype = parse_typed_fact(kind).datum_type.storage.numpy
    inputs = [np.array(one, dtype) for one in bounds]
    start, end, step = (one.item() for one in inputs)
    count = (
        max(-((start - end) // step), 0) if kind[0] in "iu" else int(np.ceil((float(end) - float(start)) / float(step)))
    )
    inputs.append(np.zeros(count, dtype))
    model = range_of(symbol("N"), kind)
    plan = CpuPlan(model, isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    found, wanted = (one.spawn().run(inputs)[0] for one in (plan, ReferenceRuntime().prepare(model)))
    assert found.tobytes() == np.ascontiguousarray(wanted).tobytes()


@pytest.mark.parametrize("bounds", [(0, 5, 0), (0, 5, 2), (0, 2**62, 1), (5, 0, 1)], ids=str)
@pytest.mark.parametrize("kind", ["i64", "f64"])
def test_a_range_that_is_not_as_long_as_announced_is_the_error_of_the_reference(kind, bounds) -> None:
    model, dtype = range_of(symbol("N"), kind), parse_typed_fact(kind).datum_type.storage.numpy
    inputs = [*(np.array(one, dtype) for one in bounds), np.zeros(5, dtype)]
    errors: list[str] = []
    for plan in (CpuPlan(model, BEST), ReferenceRuntime().prepare(model)):
        with pytest.raises(RunError) as error:
            plan.spawn().run(inputs)
        errors.append(re.sub(r"take 1106804644422573\d{5} bytes", "take 3 * 2^65 bytes", str(error.value)))
    assert errors[0] == errors[1]  # but for the bytes of the inputs
    assert "'numbers'" in errors[0]


def test_sizes_are_numbers_for_any_sizes(isa) -> None:
    model, size = TypedModel(), symbol("N")
    x = model.add_source("x", parse_typed_fact("N,i64", model.symbols))
    sizes = np.empty(1, object)
    sizes[:] = [2 * size - 7]
    model.set_outputs(model.wire_node("sum", Add(), [x, *model.wire_node("n", Const(SymbolicArray(sizes)), [])]))
    plan = CpuPlan(model, isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    for count in (0, 1, 5):
        np.testing.assert_array_equal(plan.spawn().run([np.ones(count, "i8")])[0], np.full(count, 2 * count - 6))


def test_a_shape_that_is_another_is_refused_like_by_the_reference(isa) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("N,3,f32", model.symbols))
    model.set_outputs(model.wire_node("check", CheckShape((4, None), "the file says so", "mend the file"), [x]))
    plan, reference = CpuPlan(model, isa), ReferenceRuntime().prepare(model)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    fits = np.ones((4, 3), "f4")
    np.testing.assert_array_equal(plan.spawn().run([fits])[0], fits)
    errors: list[str] = []
    for one in (plan, reference):
        with pytest.raises(RunError) as error:
            one.spawn().run([np.ones((2, 3), "f4")])
        errors.append(str(error.value))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("reduces", [False, True], ids=["chain", "rows"])
def test_what_reads_a_size_that_comes_up_in_the_middle_is_fused_into_nothing_before_it(isa, reduces) -> None:
    model = TypedModel()
    x, flags = (model.add_source(name, parse_typed_fact(kind)) for name, kind in (("x", "1,5,i64"), ("flags", "5,i64")))
    places = model.wire_node("places", NonZero(model.symbols.new_symbol("found")), [flags])
    before = model.wire_node("before", Neg(), [x])
    after = model.wire_node("after", Add(), [*places, *before])
    last = model.wire_node("last", Reduce((1,), Reducer.SUM), after) if reduces else after
    model.set_outputs(last)
    values = np.arange(5).reshape(1, 5)
    plan = CpuPlan(model, isa)
    for flagged in ([1, 1, 1, 1, 1], [0, 0, 3, 0, 0]):
        wanted = np.flatnonzero(flagged) - values
        found = plan.spawn().run([values, np.array(flagged)])[0]
        np.testing.assert_array_equal(found, wanted.sum(1, keepdims=True) if reduces else wanted)
