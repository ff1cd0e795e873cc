"""What a model may ask for, and who counts it."""

from __future__ import annotations

import pickle
import re
import sys
import threading
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.errors import InputError, LimitExceeded, RunError
from tract_core.limits import (
    DEFAULT_LIMITS,
    Budget,
    LoadLimits,
    check_run_time,
    check_tensor,
    count_node,
    current_budget,
    limits_now,
    machine_memory,
    run_limit,
    running,
    spending,
)
from tract_core.model.fact import ShapeFact, TypedFact, check_sizes
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.tile import Tile
from tract_core.rules import declutter
from tract_core.runtime.plan import TypedSimplePlan


def test_without_a_watch_nothing_is_counted() -> None:
    assert current_budget() is None
    assert limits_now() is DEFAULT_LIMITS
    count_node()


def test_nodes_are_counted_over_all_graphs() -> None:
    with spending(LoadLimits(max_nodes=3)):
        for _ in range(3):
            TypedModel().add_source("x", TypedFact.of(DatumType.F32, (2,)))
        with pytest.raises(LimitExceeded, match="more than 3 nodes") as caught:
            TypedModel().add_source("x", TypedFact.of(DatumType.F32, (2,)))
    assert caught.value.hint == "a model that needs so many can be loaded with LoadLimits(max_nodes=...)"
    assert current_budget() is None


def test_the_outermost_watch_counts() -> None:
    with spending(LoadLimits(max_nodes=2)) as outer, spending(LoadLimits(max_nodes=100)) as inner:
        assert inner is outer
        assert limits_now().max_nodes == 2


def test_time() -> None:
    budget = Budget(LoadLimits(deadline_s=0))
    with pytest.raises(LimitExceeded, match="longer than 0 seconds"):
        budget.time()
    Budget(LoadLimits(deadline_s=100)).time()


def test_bytes_that_replace_others_count_for_the_difference() -> None:
    budget = Budget(LoadLimits(max_fold_bytes=100))
    assert budget.take_bytes(60)
    assert not budget.take_bytes(60)
    assert budget.take_bytes(60, freed=30)
    assert budget.take_bytes(1000, freed=1000)
    assert not budget.take_bytes(20)
    assert budget.take_bytes(0, freed=80)
    assert budget.take_bytes(90)


def test_sizes_of_facts() -> None:
    check_sizes(ShapeFact((1,) * 64))
    with pytest.raises(LimitExceeded, match="65 axes, 64 are allowed"):
        check_sizes(ShapeFact((1,) * 65))
    with pytest.raises(LimitExceeded, match="more than 64 bits"):
        check_sizes(ShapeFact((1 << 63,)))


def test_limits_are_values() -> None:
    limits = LoadLimits(max_depth=3)
    assert pickle.loads(pickle.dumps(limits)) == limits == LoadLimits(max_depth=3)
    assert limits.for_rewriting.max_depth == 3
    assert limits.for_rewriting.max_nodes > 1 << 40


def test_memory_of_the_machine() -> None:
    assert 1 << 26 < machine_memory() <= 1 << 46
    assert run_limit(LoadLimits(max_tensor_bytes=1000)) == 1000
    assert run_limit(LoadLimits(max_tensor_bytes=1 << 60)) == machine_memory()


def test_tensors_of_a_run() -> None:
    check_tensor((1 << 20,), 4)
    check_tensor((0, 1 << 59), 8)
    with pytest.raises(RunError, match=r"a tensor of shape \[1099511627776,1048576\] would take"):
        check_tensor((1 << 40, 1 << 20), 1)
    for sizes in ((0, 1 << 63), (1 << 40, 0, 1 << 40)):
        with pytest.raises(RunError, match="cannot be: its sizes have no product of 64 bits"):
            check_tensor(sizes, 1)
    with running(10):
        check_tensor((5,), 2)
        with pytest.raises(RunError, match="would take 12 bytes, 10 are allowed"):
            check_tensor((6,), 2)


def tiled(count: int) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", TypedFact.of(DatumType.F32, (model.symbols.add("N"),)))
    (y,) = model.wire_node("y", Tile((count,)), [x])
    model.set_outputs(model.wire_node("z", Add(), [y, y]))
    return model


def test_the_time_of_a_run() -> None:
    with running(10, 100) as outer, running(5, -1) as inner:
        assert (inner.tensor_bytes, inner.until) == (5, outer.until)
        check_run_time()
    with running(10, -1), pytest.raises(RunError, match="longer than -1 seconds") as caught:
        check_run_time()
    assert "run_deadline_s" in str(caught.value.hint)
    with running(10, -1), pytest.raises(RunError, match="longer than -1 seconds"), running(10):
        pass
    with running(10):
        check_run_time()
    check_run_time()


def test_limits_go_where_the_model_goes() -> None:
    model = tiled(3)
    model.limits = LoadLimits(max_tensor_bytes=100)
    for one in (model, model.clone(), model.empty_like(), pickle.loads(pickle.dumps(model)), declutter(model)):
        assert one.limits.max_tensor_bytes == 100


def test_every_new_size_is_checked() -> None:
    model = tiled(1000)
    model.limits = LoadLimits(max_tensor_bytes=40_000)
    state = TypedSimplePlan(model).spawn()
    for size in (10, 10, 3):
        assert len(state.run([np.ones(size, np.float32)])[0]) == 1000 * size
    for _ in range(2):
        with pytest.raises(RunError, match=r"shape \[11000\] would take 44000 bytes, 40000 are allowed") as caught:
            state.run([np.ones(11, np.float32)])
        assert caught.value.where == "node 'y' (Tile)"
    assert len(state.run([np.ones(10, np.float32)])[0]) == 10_000


def test_constants_are_made_within_the_budget() -> None:
    model = TypedModel()
    x = model.add_source("x", TypedFact.of(DatumType.F32, (1 << 18,)))
    for index in range(8):
        c = model.add_const(f"c{index}", np.arange(1 << 9, dtype=np.float32) + index)
        (t,) = model.wire_node(f"t{index}", Tile((1 << 9,)), [c])
        (x,) = model.wire_node(f"x{index}", Add(), [t, x])
    model.set_outputs([x])
    model.limits = LoadLimits(max_fold_bytes=3 << 20)
    declutter(model)
    assert sum(isinstance(node.op, Tile) for node in model.live_nodes()) >= 4


@pytest.mark.parametrize("value", [-1, -1.5, nan, "1", None, True, [1]])
def test_a_limit_is_a_number(value: Any) -> None:
    with pytest.raises(InputError, match=rf"LoadLimits: deadline_s is {re.escape(repr(value))}, wanted a number"):
        LoadLimits(deadline_s=value)
    assert LoadLimits(max_nodes=np.int64(3), deadline_s=inf).for_rewriting.deadline_s == inf


@pytest.mark.parametrize("deadline", [inf, 1e300, sys.float_info.max])
def test_nobody_waits_longer_than_a_thread_can(deadline: float) -> None:
    with spending(LoadLimits(deadline_s=deadline)) as budget:
        assert budget.seconds_left <= threading.TIMEOUT_MAX
        assert threading.Lock().acquire(timeout=budget.seconds_left)
    with spending(LoadLimits(deadline_s=0)) as budget:
        assert budget.seconds_left == 0
