"""The shipped files: collected only when they are asked for, and listed in a table at the end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console
from rich.table import Table

HERE: Final = Path(__file__).parent

sys.path.insert(0, str(HERE))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if collection_path.parent == HERE and "shipped" not in config.option.markexpr else None


@pytest.fixture(autouse=True)
def _patches_are_checked() -> None:
    """Not here: files are loaded as users load them, in the time that it takes them."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.stats.get(kind, ())]
    rows = sorted(row for report in reports if (row := dict(report.user_properties).get("lite")))
    if not rows:
        return
    table = Table("file", "MB", "nodes", "load s", "cpu", "archive", title="shipped files of TFLite")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160).print(table)
