"""The options of the conformance kit, for every pytest in an environment where the core is installed.

This module is imported whenever such a pytest starts, and imports next to nothing; the kit itself is in
`tract_core.testing.conformance`, and runs when it is asked for:
``pytest --pyargs tract_core.testing --tract-runtime NAME``.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--tract-runtime`` and ``--tract-registry``. Plain names would clash with those of other plugins."""
    group = parser.getgroup("tract", "conformance of tract runtimes: pytest --pyargs tract_core.testing")
    group.addoption(
        "--tract-runtime",
        action="append",
        metavar="NAME",
        help="a runtime to check; may be given several times (default: every installed one that works here)",
    )
    group.addoption(
        "--tract-registry",
        metavar="MODULE:FUNCTION",
        help="where the registry comes from, for a runtime that is not installed (default: the installed plugins)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse, in one line and before anything is collected, a runtime or a registry that is not there."""
    if config.getoption("--tract-runtime") or config.getoption("--tract-registry"):
        from tract_core.testing.conformance.selection import chosen_registry, chosen_runtimes

        with warnings.catch_warnings(action="ignore"):  # plugins that fail are told by the kit's own test of them
            chosen_runtimes(config, chosen_registry(config))
