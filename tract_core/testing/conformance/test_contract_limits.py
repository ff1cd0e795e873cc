"""What a model may be run with: assertions that it was simplified under, what operators want of sizes, and limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tract_core.errors import InputError, RunError
from tract_core.testing.checks import Bench
from tract_core.testing.conformance.models import (
    as_many_places,
    as_many_rows,
    ones,
    repeated_places,
    sum_of_exponentials,
    three_tensors,
)
from tract_core.testing.conformance.selection import pytest_generate_tests

__all__ = [
    "pytest_generate_tests",
    "test_all_tensors_of_a_run_are_limited",
    "test_assertions_of_the_scope_hold",
    "test_conditions_hold_in_the_middle_of_a_run",
    "test_conditions_of_operators_hold",
    "test_sizes_that_a_run_finds_are_limited",
    "test_the_time_of_a_run_is_limited",
    "test_too_large_tensors_are_refused",
]


def test_assertions_of_the_scope_hold(bench: Bench) -> None:
    """An InputError for sizes under which the model was not simplified, in every turn that has them."""
    model = sum_of_exponentials(bench.registry)
    model.symbols.add_assertion("N>=3")
    state = bench.runtime.prepare(model).spawn()
    for size, fits in ((3, True), (2, False), (2, False), (5, True)):
        if fits:
            assert state.run([ones(size, 3), ones(size, 3)])[0].shape == (size, 3)
        else:
            with pytest.raises(InputError, match="N>=3"):
                state.run([ones(size, 3), ones(size, 3)])


def test_conditions_of_operators_hold(bench: Bench) -> None:
    """An InputError for sizes that an operator does not want, in every turn that has them, where it is not run too."""
    state = bench.runtime.prepare(as_many_rows(bench.registry)).spawn()
    for rows, fits in ((3, True), (1, False), (1, False), (0, False), (3, True)):
        if fits:
            assert state.run([ones(3, 3), ones(rows, 3)])[0].shape == (3, 3)
        else:
            with pytest.raises(InputError, match=rf"node 'joined' .*N is 3 and M is {rows}"):
                state.run([ones(3, 3), ones(rows, 3)])


def test_conditions_hold_in_the_middle_of_a_run(bench: Bench) -> None:
    """A RunError, as soon as a node has told a size that an operator does not want."""
    state = bench.runtime.prepare(as_many_places(bench.registry)).spawn()
    for places, fits in ((2, True), (1, False), (1, False), (0, False), (2, True)):
        given = [np.array([0, 1, 0, 1], np.float32), np.zeros((1, places), np.int64)]
        if fits:
            assert state.run(given)[0].tolist() == [[1, 3]]
        else:
            with pytest.raises(RunError, match=rf"node 'joined' .*count is 2 and N is {places}"):
                state.run(given)


def test_too_large_tensors_are_refused(bench: Bench) -> None:
    """A RunError, with the name of a node, where a tensor would take more than ``max_tensor_bytes``."""
    model = sum_of_exponentials(bench.registry)
    model.limits = replace(model.limits, max_tensor_bytes=120)
    state = bench.runtime.prepare(model).spawn()
    for size in (2, 10):
        assert state.run([ones(size, 3), ones(size, 3)])[0].shape == (size, 3)
    with pytest.raises(RunError, match=r"node '\w+' .*\[11,3\] would take 132 bytes, 120 are allowed"):
        state.run([ones(11, 3), ones(11, 3)])


def test_sizes_that_a_run_finds_are_limited(bench: Bench) -> None:
    """A RunError as soon as a node has told a size with which one behind it would give too large a tensor."""
    model = repeated_places(bench.registry)
    model.limits = replace(model.limits, max_tensor_bytes=200)
    state = bench.runtime.prepare(model).spawn()
    for places in ([0, 1, 1, 0], [1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]):
        given = [np.array(places, np.float32)]
        if sum(places) < 3:
            assert state.run(given)[0].tolist() == [[place for place, one in enumerate(places) if one] * 10]
        else:
            size = sum(places) * 10
            with pytest.raises(RunError, match=rf"node 'repeated' .*\[1,{size}\] would take {size * 8} bytes, 200 are"):
                state.run(given)


def test_all_tensors_of_a_run_are_limited(bench: Bench) -> None:
    """A RunError where all tensors that are there at the same time would take more than ``max_run_bytes``."""
    model = three_tensors(bench.registry)
    model.limits = replace(model.limits, max_run_bytes=1 << 16)
    state = bench.runtime.prepare(model).spawn()
    for size in (10, 2000, 7000, 3, 1 << 14, 2500, 0, 1):
        if size * 24 < 1 << 16:  # half of it may go into what an operator needs besides
            assert [len(one) for one in state.run([ones(size)])] == [size] * 3
        else:
            with pytest.raises(RunError, match=r"would take \d+ bytes at the same time, 65536 are allowed"):
                state.run([ones(size)])


def test_the_time_of_a_run_is_limited(bench: Bench) -> None:
    """A RunError when ``run_deadline_s`` is over, which with no time at all it is at the first node."""
    model = sum_of_exponentials(bench.registry)
    model.limits = replace(model.limits, run_deadline_s=0.0)
    state = bench.runtime.prepare(model).spawn()
    with pytest.raises(RunError, match="longer than 0 seconds"):
        state.run([ones(2, 3), ones(2, 3)])
    model.limits = replace(model.limits, run_deadline_s=600.0)
    (found,) = bench.runtime.prepare(model).spawn().run([ones(2, 3), ones(2, 3)])
    np.testing.assert_allclose(found, np.full((2, 3), 2 * np.e), rtol=1e-5)
