"""Trained files that packages ship, as they are, against ONNX Runtime: ``make test-shipped``."""

from __future__ import annotations

from pathlib import Path

import fetch
import pytest
from shipped_verdict import examine

pytestmark = pytest.mark.shipped


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    paths = fetch.models(metafunc.config.getoption("models"))
    metafunc.parametrize("path", [pytest.param(path, id=fetch.short_name(path)) for path in paths])


def test_file(path: Path, record_property) -> None:
    findings = examine(path, fetch.known(path))
    figures = (
        f"{findings.megabytes:.1f}", str(findings.nodes), f"{findings.seconds:.2f}",
        f"{findings.wired:.0e}", f"{findings.decluttered:.0e}", f"{findings.cpu:.0e}", f"{findings.written:.0e}",
    )  # fmt: skip
    record_property("row", (fetch.short_name(path), *figures, findings.verdict))
    assert not findings.failures, findings.verdict
