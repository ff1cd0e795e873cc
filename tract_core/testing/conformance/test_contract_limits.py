"""What a model may be run with: the assertions that it was simplified under, and its limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tract_core.errors import InputError, RunError
from tract_core.testing.checks import Bench
from tract_core.testing.conformance.models import ones, sum_of_exponentials
from tract_core.testing.conformance.selection import pytest_generate_tests

__all__ = [
    "pytest_generate_tests",
    "test_assertions_of_the_scope_hold",
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


def test_too_large_tensors_are_refused(bench: Bench) -> None:
    """A RunError, with the name of a node, where a tensor would take more than ``max_tensor_bytes``."""
    model = sum_of_exponentials(bench.registry)
    model.limits = replace(model.limits, max_tensor_bytes=120)
    state = bench.runtime.prepare(model).spawn()
    for size in (2, 10):
        assert state.run([ones(size, 3), ones(size, 3)])[0].shape == (size, 3)
    with pytest.raises(RunError, match=r"node '\w+' .*\[11,3\] would take 132 bytes, 120 are allowed"):
        state.run([ones(11, 3), ones(11, 3)])


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
