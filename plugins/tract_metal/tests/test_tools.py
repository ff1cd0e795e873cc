"""The script for those who have a Mac, tried without one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "first_mac_run.py"


def test_it_writes_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("first_mac_run", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.setattr(tool, "NETWORKS", ("LSTM",))
    monkeypatch.setattr(tool, "PARTS", {name: tool.PARTS[name] for name in ("machine", "networks")} | {"fails": None})
    report = tmp_path / "report.md"
    monkeypatch.setattr(sys, "argv", ["first_mac_run", "--device", "cpu", "--small", "--out", str(report)])
    assert tool.main() == 1
    text = report.read_text()
    assert "**no figure counts**" in text
    assert "| LSTM | " in text
    assert "TypeError" in text
