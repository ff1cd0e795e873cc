"""What is shown while something takes long."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from tract_core.cli.printing import progress
from tract_core.cli.printing.progress import ProgressLine


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every bar that is begun, of a command whose patience is short."""
    from rich.progress import Progress as Bar

    begun: list[Any] = []
    start = Bar.start
    monkeypatch.setattr(Bar, "start", lambda bar: (begun.append(bar), start(bar)))
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    return begun


def test_what_takes_long_within_something_else_has_the_same_line(bars: list[Any]) -> None:
    shown = ProgressLine(silent=False)
    with shown.running("comparing"):
        time.sleep(0.1)
        with shown.running("preparing"):
            time.sleep(0.1)
            assert bars[0].tasks[0].description == "preparing"
        assert bars[0].tasks[0].description == "comparing"
    assert len(bars) == 1
    assert not bars[0].live.is_started


def test_one_thing_after_the_other_has_a_line_each(bars: list[Any]) -> None:
    shown = ProgressLine(silent=False)
    for doing in ("loading", "running"):
        with shown.running(doing):
            time.sleep(0.1)
    assert [bar.tasks[0].description for bar in bars] == ["loading", "running"]
    assert not any(bar.live.is_started for bar in bars)
