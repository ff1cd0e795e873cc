"""Every case, on every chosen runtime."""

from __future__ import annotations

from tract_core.testing.case import Case
from tract_core.testing.checks import CHECKS, Bench
from tract_core.testing.conformance.selection import all_cases, gaps_of, pytest_generate_tests

__all__ = ["pytest_generate_tests", "test_case", "test_known_gaps"]


def test_case(bench: Bench, case: Case, check: str) -> None:
    """The runtime computes what the case says."""
    CHECKS[check](case, bench)


def test_known_gaps(bench: Bench) -> None:
    """Each known gap of the runtime has a reason, and is about a case and a check that there are."""
    names = [case.name for case in all_cases(bench.registry)]
    for gap in gaps_of(bench.registry, bench.runtime.name):
        assert gap.reason, f"{gap} has no reason"
        assert any(gap.covers(name, check) for name in names for check in CHECKS), f"{gap} is about no case"
