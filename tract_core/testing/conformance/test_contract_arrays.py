"""Whose memory arrays are: those that the caller gives to be filled, outputs, and constants however they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tract_core.errors import InputError
from tract_core.runtime.protocol import LendingPlan, PlanState
from tract_core.testing.checks import Bench
from tract_core.testing.conformance.models import layouts, ones, plus_constant, sum_of_exponentials, views
from tract_core.testing.conformance.selection import pytest_generate_tests

__all__ = [
    "pytest_generate_tests",
    "test_arrays_of_the_caller_are_filled",
    "test_arrays_of_the_caller_that_do_not_fit_are_refused",
    "test_constants_may_lie_in_any_way",
    "test_outputs_are_not_changed_by_later_turns",
    "test_outputs_share_no_memory_with_inputs",
]


def _fresh(bench: Bench) -> PlanState:
    return bench.runtime.prepare(sum_of_exponentials(bench.registry)).spawn()


def test_outputs_are_not_changed_by_later_turns(bench: Bench) -> None:
    """What a turn returned stays as it is."""
    state = _fresh(bench)
    (first,) = state.run([ones(2, 3), ones(2, 3)])
    kept = np.array(first)
    state.run([ones(2, 3) * 5, ones(2, 3) * 5])
    np.testing.assert_array_equal(first, kept)


def test_outputs_share_no_memory_with_inputs(bench: Bench) -> None:
    """An output that is an input, or a view on one, is a copy, unless the plan says that it may be one."""
    plan = bench.runtime.prepare(views(bench.registry))
    lent = frozenset(plan.lent) if isinstance(plan, LendingPlan) else frozenset[int]()
    given = ones(2, 3)
    found = plan.spawn().run([given])
    shared = [slot for slot, array in enumerate(found) if slot not in lent and np.may_share_memory(array, given)]
    assert not shared, f"outputs {shared} are memory of an input, the plan lends {sorted(lent)}"


def test_arrays_of_the_caller_are_filled(bench: Bench) -> None:
    """``out`` is what is filled and returned, for sizes that come and go; inputs and earlier ones stay as they are."""
    state, earlier = _fresh(bench), [ones(0, 3)]
    for size in (2, 5, 0, 2):
        given, filled = [ones(size, 3), ones(size, 3)], ones(size, 3) * np.float32(np.nan)
        found = state.run(given, out=[filled])
        assert len(found) == 1
        assert found[0] is filled
        earlier.append(filled)
        assert all((array == 1).all() for array in given)
    for filled in earlier[1:]:
        np.testing.assert_allclose(filled, np.full(filled.shape, 2 * np.e), rtol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "kind"),
    [((), "f4"), (((2, 3), (2, 3)), "f4"), (((3, 3),), "f4"), (((6,),), "f4"), (((2, 3),), "f8")],
    ids=["too few", "too many", "wrong size", "wrong rank", "wrong type"],
)
def test_arrays_of_the_caller_that_do_not_fit_are_refused(
    bench: Bench, shapes: Sequence[tuple[int, ...]], kind: str
) -> None:
    """An InputError, with nothing written, for ``out`` of a wrong number, rank, size or type."""
    state, out = _fresh(bench), [np.zeros(shape, kind) for shape in shapes]
    with pytest.raises(InputError):
        state.run([ones(2, 3), ones(2, 3)], out=out)
    assert not any(array.any() for array in out)


@pytest.mark.parametrize("layout", layouts())
def test_constants_may_lie_in_any_way(bench: Bench, layout: str) -> None:
    """A constant is what its array says, whatever its strides, and wherever it begins."""
    array = layouts()[layout]
    (found,) = bench.runtime.prepare(plus_constant(bench.registry, array)).spawn().run([ones(3, 4)])
    np.testing.assert_array_equal(found, np.array(array) + 1)
