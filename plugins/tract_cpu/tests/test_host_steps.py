"""Models of which some nodes are left to the host: what a turn finds ready from the one before changes no result."""

from __future__ import annotations

import tracemalloc
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_cpu.state import CpuState
from tract_llvm.isa import of_this_machine

from tract_core.dims import symbol
from tract_core.errors import TractError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.activation import Tanh
from tract_core.ops.binary import Add
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.unique import Unique
from tract_core.runtime.reference import ReferenceRuntime


def counted(model: TypedModel) -> OutletId:
    """Where different elements of ``[S,3]`` are first, behind a step that is native."""
    (y,) = model.wire_node("y", Tanh(), [model.add_source("x", parse_typed_fact("S,3,f32", model.symbols))])
    z = model.wire_node("z", Unique(None, True, symbol("n")), [y])[1]
    model.set_outputs([y, z])
    return z


def plan_of(model: TypedModel) -> CpuPlan:
    plan = CpuPlan(model, of_this_machine()[-1])
    assert isinstance(plan.spawn(), CpuState)
    return plan


def given(count: int, zeros: int) -> np.ndarray[Any, Any]:
    x = np.random.default_rng(count).standard_normal((count, 3)).astype("f4")
    x.reshape(-1)[:zeros] = 0
    return x


def test_turns_of_other_sizes_and_contents_are_those_of_the_reference() -> None:
    model = TypedModel()
    counted(model)
    plan, wanted = plan_of(model), ReferenceRuntime().prepare(model)
    state = plan.spawn()
    for count, zeros in [(2, 0), (2, 0), (2, 4), (0, 0), (5, 15), (2, 4), (2, 0), (5, 1)]:
        x = given(count, zeros)
        for one in (plan.spawn(), state):
            for found, right in zip(one.run([x]), wanted.spawn().run([x]), strict=True):
                np.testing.assert_allclose(found, right, rtol=1e-6)


def test_results_stay_as_they_are_in_later_turns() -> None:
    model = TypedModel()
    counted(model)
    plan = plan_of(model)
    first = plan.spawn().run([given(4, 3)])
    copies = [one.copy() for one in first]
    for zeros in (3, 5):
        plan.spawn().run([given(4, zeros) * 2])
    for one, copy in zip(first, copies, strict=True):
        np.testing.assert_array_equal(one, copy)


def test_a_fresh_state_knows_nothing_of_one_that_is_gone() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("4,f32", model.symbols))
    mean = model.add_const("mean", np.float32(1))
    norm = pytest.importorskip("tract_nnef.nnef_only.exp_norm").ExpMeanNorm(0, 0.5)
    model.set_outputs(model.wire_node("y", norm, [x, mean]))
    plan, data = plan_of(model), np.arange(1, 5, dtype="f4")
    first = plan.spawn().run([data])[0].copy()
    state = plan.spawn()
    np.testing.assert_array_equal(state.run([data])[0], first)
    later = state.run([data * 3])[0]
    assert not np.array_equal(later, first)
    np.testing.assert_array_equal(plan.spawn().run([data])[0], first)
    del state
    np.testing.assert_array_equal(plan.spawn().run([data])[0], first)


def test_states_of_several_threads_have_what_they_need_for_themselves() -> None:
    model = TypedModel()
    counted(model)
    plan, wrong = plan_of(model), list[int]()

    def work(number: int) -> None:
        x = given(number + 1, number)
        for _ in range(20):
            y, z = plan.spawn().run([x])
            right = np.tanh(x.astype("f8"))
            if not (np.allclose(y, right, rtol=1e-5) and np.array_equal(z, np.unique(y, return_index=True)[1])):
                wrong.append(number)

    workers = [Thread(target=work, args=[number]) for number in range(6)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert not wrong


def test_a_turn_after_one_that_was_refused_is_right() -> None:
    model = TypedModel()
    counted(model)
    plan = plan_of(model)
    right = plan.spawn().run([given(2, 1)])
    with pytest.raises(TractError):
        plan.spawn().run([given(2, 1).astype("f8")])
    for found, wanted in zip(plan.spawn().run([given(2, 1)]), right, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_results_that_nobody_needs_any_more_take_no_memory() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    for number in range(8):
        shift = model.add_const(f"shift{number}", np.full(1, number, np.float32))
        (moved,) = model.wire_node(f"moved{number}", Add(), [x, shift])
        places = model.wire_node(f"places{number}", Unique(None, True, symbol(f"n{number}")), [moved])[1]
        model.set_outputs([*model.outputs, *model.wire_node(f"sum{number}", Reduce((0,), Reducer.SUM), [places])])
    plan, given = plan_of(model), np.arange(1 << 16, dtype=np.float32)
    wanted = [one[0] for one in plan.spawn().run([given])]
    assert wanted == [(1 << 15) * ((1 << 16) - 1)] * 8
    tracemalloc.start()
    try:
        plan.spawn().run([given])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * 8 * given.size  # of 32 results, most of i64, and what the host needs for four of them
