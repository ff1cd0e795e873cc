"""Whose memory arrays are: those that the caller gives to be filled, outputs, and constants however they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.errors import InputError
from tract_core.plugins.keys import Array
from tract_core.runtime.protocol import LendingPlan, PlanState, Repeating
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
    "test_turns_that_are_repeated_are_right",
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


def test_turns_that_are_repeated_are_right(bench: Bench) -> None:
    """What is repeated gives the outputs of its inputs, new ones each time. What is not as before is left to `run`."""
    plan = bench.runtime.prepare(sum_of_exponentials(bench.registry))
    state = plan.spawn()
    wrong: list[Any] = [None, "ab", [], [ones(2, 3)], [ones(2, 3)] * 3, [ones(3, 3), ones(2, 3)], [ones(6), ones(6)]]
    wrong += [
        [ones(3, 2).T] * 2,
        [np.ones((2, 3))] * 2,
        [ones(2, 6)[:, ::2]] * 2,
        [ones(2, 3).byteswap().view(">f4")] * 2,
    ]
    for one, spawn in ((plan, plan.spawn), (state, lambda: state)):
        kept: list[Array] = []
        for number, size in enumerate((2, 2, 0, 2, 5, 5)):
            given = [ones(size, 3) * np.float32(number), ones(size, 3)]
            repeated = one.repeat(given) if isinstance(one, Repeating) else None
            found = spawn().run(given) if repeated is None else repeated
            np.testing.assert_allclose(found[0], np.exp(given[0]) + np.exp(given[1]), rtol=1e-5)
            assert not any(np.may_share_memory(found[0], other) for other in kept), "an output came twice"
            kept.append(found[0])
            filled = [np.zeros_like(found[0])]
            again = one.repeat(given, filled) if isinstance(one, Repeating) else None
            assert again is None or (again[0] is filled[0] and np.array_equal(filled[0], found[0]))
        spawn().run([ones(2, 3)] * 2)
        for inputs in wrong:
            assert not isinstance(one, Repeating) or one.repeat(inputs) is None, f"{inputs!r} is not as before"
        for filled in ([], [ones(2, 3)] * 2, [ones(3, 3)], [np.ones((2, 3))], [ones(3, 2).T]):
            fits = isinstance(one, Repeating) and one.repeat([ones(2, 3)] * 2, filled) is not None
            assert not fits, f"{filled!r} is no array to fill with 2,3,f32"


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
