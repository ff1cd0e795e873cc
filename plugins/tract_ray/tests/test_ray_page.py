"""What docs/ray.md shows, run as pasted, where Ray is; without it, `tests/test_docs.py` runs what needs none."""

from __future__ import annotations

import re
import shlex
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from row_models import classifier

from tract_core.cli.frame import app

ray: Any = pytest.importorskip("ray", reason="run by `make test-ray`")

pytestmark = pytest.mark.ray

PAGE = Path(__file__).parents[3] / "docs" / "ray.md"
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_every_block_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ADDRESS", "local")  # not a cluster of somebody else on this machine
    Path("model.onnx").write_bytes(classifier())
    names: dict[str, Any] = {}
    for language, title, text in BLOCK.findall(PAGE.read_text()):
        if language == "console":
            for line in re.findall(r"^\$ tract (.*?)$", text, re.MULTILINE):
                assert CliRunner().invoke(app, shlex.split(line), prog_name="tract").exit_code == 0, line
        elif title:
            Path(title).write_text(text)
            assert import_module(title.removesuffix(".py")).main() == [8] * 4
            del sys.modules[title.removesuffix(".py")]
        elif language == "python" and ("dask" not in text or find_spec("dask")):
            capsys.readouterr()
            exec(compile(text, "page", "exec"), names)
            printed = capsys.readouterr().out.splitlines()
            promised = re.findall(r"print\(.*\)\s+# (.*)", text)
            assert [line for line in printed if line in promised] == promised, (text, printed)
