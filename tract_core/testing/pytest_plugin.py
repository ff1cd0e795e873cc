"""The options of the conformance kit, for every pytest in an environment where the core is installed.

This module is imported whenever such a pytest starts, and imports next to nothing; the kit itself is in
`tract_core.testing.conformance`, and runs when it is asked for: ``pytest --pyargs tract_core.testing --runtime NAME``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--runtime`` and ``--tract-registry``."""
    group = parser.getgroup("tract", "conformance of tract runtimes: pytest --pyargs tract_core.testing")
    with suppress(ValueError):  # another plugin has an option of that name: every pytest here must start all the same
        group.addoption(
            "--runtime",
            action="append",
            metavar="NAME",
            help="a runtime to check; may be given several times (default: every installed one that works here)",
        )
    group.addoption(
        "--tract-registry",
        metavar="MODULE:FUNCTION",
        help="where the registry comes from, for a runtime that is not installed (default: the installed plugins)",
    )
