"""A process that loads an archive imports neither onnx nor what reading its text does not need."""

from __future__ import annotations

import subprocess
import sys

from models import small_model

import tract_core as tract


def test_loading_imports_neither_onnx_nor_lark(tmp_path) -> None:
    tract.Model.from_typed(small_model()).save(tmp_path / "m.tar")
    script = "import sys, tract_core; tract_core.load(sys.argv[1]); print(*sys.modules, sep=chr(10))"
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "m.tar")], check=True, capture_output=True, text=True
    )
    loaded = found.stdout.split()
    assert "tract_nnef.reading.loader" in loaded
    unwanted = ("onnx", "lark", "google", "tract_nnef.writing.saver", "click", "rich")
    assert [name for name in loaded if name.split(".")[0] in unwanted or name in unwanted] == []
