"""What every runtime promises of a turn, whatever the operators: `tract_core.runtime.protocol` in tests.

The other parts of the contract are in the modules beside: arrays, limits, nodes, options, states.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tract_core.errors import InputError
from tract_core.runtime.protocol import PlanState
from tract_core.testing.checks import Bench
from tract_core.testing.conformance.models import ones, sum_of_exponentials
from tract_core.testing.conformance.selection import pytest_generate_tests

__all__ = [
    "pytest_generate_tests",
    "test_arrays_that_do_not_fit_are_refused",
    "test_each_turn_has_sizes_of_its_own",
]


def _fresh(bench: Bench) -> PlanState:
    return bench.runtime.prepare(sum_of_exponentials(bench.registry)).spawn()


@pytest.mark.parametrize(
    ("shapes", "kind"),
    [
        (((2, 3),), "f4"),
        (((2, 3), (2, 3), (2, 3)), "f4"),
        (((2, 3), (2, 4)), "f4"),
        (((2, 3), (2, 3, 1)), "f4"),
        (((2, 3), (5, 3)), "f4"),
        (((2, 3), (2, 3)), "f8"),
    ],
    ids=["too few", "too many", "wrong size", "wrong rank", "symbol with two values", "wrong type"],
)
def test_arrays_that_do_not_fit_are_refused(bench: Bench, shapes: Sequence[tuple[int, ...]], kind: str) -> None:
    """An InputError, and no crash, for arrays of a wrong number, rank, size or type."""
    state = _fresh(bench)
    with pytest.raises(InputError):
        state.run([np.ones(shape, kind) for shape in shapes])
    (found,) = state.run([ones(2, 3), ones(2, 3)])
    assert found.shape == (2, 3)


def test_each_turn_has_sizes_of_its_own(bench: Bench) -> None:
    """Symbols are bound anew in each turn of a stateless model, also to nothing at all."""
    state = _fresh(bench)
    for size in (2, 5, 1, 0, 2):
        (found,) = state.run([ones(size, 3), ones(size, 3)])
        np.testing.assert_allclose(found, np.full((size, 3), 2 * np.e), rtol=1e-5)
