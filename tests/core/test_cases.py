"""The conformance kit, on every runtime that is installed: the cases of all operators."""

from __future__ import annotations

from tract_core.testing.conformance.test_cases import pytest_generate_tests, test_case, test_known_gaps

__all__ = ["pytest_generate_tests", "test_case", "test_known_gaps"]
