"""The conformance kit, on every runtime that is installed: the contract of runtimes."""

from __future__ import annotations

from tract_core.testing.conformance.test_contract import (
    pytest_generate_tests,
    test_arrays_of_the_caller_are_filled,
    test_arrays_of_the_caller_that_do_not_fit_are_refused,
    test_arrays_that_do_not_fit_are_refused,
    test_each_turn_has_sizes_of_its_own,
    test_outputs_are_not_changed_by_later_turns,
    test_plan_explains_every_node,
    test_runtime_is_offered_by_its_name,
    test_unknown_operators_are_refused_together,
)

__all__ = [
    "pytest_generate_tests",
    "test_arrays_of_the_caller_are_filled",
    "test_arrays_of_the_caller_that_do_not_fit_are_refused",
    "test_arrays_that_do_not_fit_are_refused",
    "test_each_turn_has_sizes_of_its_own",
    "test_outputs_are_not_changed_by_later_turns",
    "test_plan_explains_every_node",
    "test_runtime_is_offered_by_its_name",
    "test_unknown_operators_are_refused_together",
]
