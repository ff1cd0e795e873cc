"""The shipped files: collected only when they are asked for, and listed in a table at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console
from rich.table import Table

HERE: Final = Path(__file__).parent
MEMORY: Final = 12 << 30
"""Bytes of addresses that a run may have: sizes that a file cannot mean must not take the machine with them."""

sys.path[:0] = [str(HERE), str(HERE.parents[1] / "plugins" / "tract_onnx" / "tests")]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--models", nargs="+", type=Path, help="ONNX files, or folders of them, to run instead")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if collection_path.parent == HERE and "shipped" not in config.option.markexpr else None


@pytest.fixture(autouse=True)
def _patches_are_checked() -> None:
    """Not here: files are loaded as users load them, in the time that it takes them."""


@pytest.fixture(scope="session", autouse=True)
def bounded_memory() -> Iterator[None]:
    resource = pytest.importorskip("resource", reason="memory is bounded where the system can")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.stats.get(kind, ())]
    rows = sorted(row for report in reports if (row := dict(report.user_properties).get("row")))
    if not rows:
        return
    table = Table(
        "file", "MB", "nodes", "load s", "wired", "decluttered", "cpu", "written", "verdict", title="shipped files"
    )
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160).print(table)
