"""What states keep: each its own, to the next turn, to a reset, and into other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from tract_core.plugins.keys import Array
from tract_core.plugins.parameters import given_parameters
from tract_core.runtime.protocol import PlanState
from tract_core.testing.checks import Bench
from tract_core.testing.conformance.models import as_wide_as_told, ones, running_sums
from tract_core.testing.conformance.selection import pytest_generate_tests

__all__ = [
    "pytest_generate_tests",
    "test_frozen_states_go_on_in_another_process",
    "test_reset_makes_a_state_fresh",
    "test_sizes_are_told_from_outside",
    "test_states_keep_no_array_of_the_caller",
    "test_states_take_turns",
]

ROWS = np.arange(12, dtype=np.float32).reshape(6, 2)
START = np.zeros((1, 2), np.float32)
SUMS = np.cumsum(ROWS.astype(np.float64), axis=0)


def _fresh(bench: Bench) -> PlanState:
    return bench.runtime.prepare(running_sums(bench.registry)).spawn()


def _turn(state: PlanState, rows: Array) -> Array:
    return np.array(state.run([rows, START])[0])


def test_reset_makes_a_state_fresh(bench: Bench) -> None:
    """As if it had just been spawned, as often as one likes."""
    state = _fresh(bench)
    for _ in range(3):
        np.testing.assert_array_equal(_turn(state, ROWS[:4]), SUMS[:4])
        np.testing.assert_array_equal(_turn(state, ROWS[4:]), SUMS[4:])
        state.reset()


def test_states_take_turns(bench: Bench) -> None:
    """States of one plan that run in turn, with other sizes each, know nothing of each other."""
    plan = bench.runtime.prepare(running_sums(bench.registry))
    one, other = plan.spawn(), plan.spawn()
    for start, end in ((0, 1), (1, 4), (4, 6)):
        np.testing.assert_array_equal(_turn(one, ROWS[start:end]), SUMS[start:end])
        np.testing.assert_array_equal(_turn(other, -ROWS[6 - end : 6 - start]), _from_the_end(6 - end, 6 - start))
    one.reset()
    np.testing.assert_array_equal(_turn(other, ROWS[:1]) - _from_the_end(0, 1), ROWS[:1])


def _from_the_end(start: int, end: int) -> Array:
    """The sums where the rows come with the other sign, the last ones first."""
    return -(np.cumsum(ROWS[start:end].astype(np.float64), axis=0) + ROWS[end:].sum(axis=0))


def test_sizes_are_told_from_outside(bench: Bench) -> None:
    """What ``symbols`` says holds for its turn, of a state that goes on; a turn without it is like any other."""
    told = bench.runtime.prepare(as_wide_as_told(bench.registry)).spawn()
    for size in (3, 0, 5):
        np.testing.assert_array_equal(told.run([ones(1)], symbols={"TOLD": size})[0], ones(size))
    state = _fresh(bench)
    for start, end, symbols in ((0, 1, None), (1, 4, {"TOLD": 3}), (4, 6, None)):
        np.testing.assert_array_equal(state.run([ROWS[start:end], START], symbols=symbols)[0], SUMS[start:end])


def test_states_keep_no_array_of_the_caller(bench: Bench) -> None:
    """What the caller writes to his arrays after a turn, those that were filled among them, reaches no later turn."""
    state, given, filled = _fresh(bench), np.array(ROWS[:4]), np.empty((4, 2), np.float32)
    state.run([given, START], out=[filled])
    np.testing.assert_array_equal(filled, SUMS[:4])
    given[...], filled[...] = np.nan, np.nan
    np.testing.assert_array_equal(_turn(state, ROWS[4:]), SUMS[4:])


def test_frozen_states_go_on_in_another_process(bench: Bench, pytestconfig: pytest.Config) -> None:
    """A snapshot that was pickled goes on where neither the plan nor anything else of this process is."""
    state = _fresh(bench)
    _turn(state, ROWS[:4])
    registry: str | None = pytestconfig.getoption("--tract-registry")
    runtime = bench.runtime.name, given_parameters(bench.runtime)
    sent = pickle.dumps([registry, runtime, state.freeze(), [ROWS[4:], START]])
    child = [sys.executable, "-m", "tract_core.testing.conformance.elsewhere"]
    found = subprocess.run(child, input=pickle.dumps(sys.path) + sent, capture_output=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr.decode()
    np.testing.assert_array_equal(pickle.loads(found.stdout)[0], SUMS[4:])
