"""What the tests of the ONNX frontend rely on: their helpers are beside them, and every rewrite is checked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _patches_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACT_CHECK_PATCHES", "1")
