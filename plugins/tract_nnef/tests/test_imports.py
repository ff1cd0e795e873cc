"""A process that loads an archive imports neither onnx nor what reading its text does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cycles import small_model

import tract_core as tract


@pytest.fixture(scope="module")
def imported(tmp_path_factory) -> list[str]:
    """What a process imports that loads exp(x + constant)."""
    archive = tmp_path_factory.mktemp("archive") / "m.tar"
    tract.Model.from_typed(small_model()).save(archive)
    script = "import sys, tract_core; tract_core.load(sys.argv[1]); print(*sys.modules, sep=chr(10))"
    found = subprocess.run([sys.executable, "-c", script, str(archive)], check=True, capture_output=True, text=True)
    return found.stdout.split()


def test_loading_imports_neither_onnx_nor_lark(imported) -> None:
    assert "tract_nnef.documents.loader" in imported
    unwanted = ("onnx", "lark", "google", "click", "rich", "tract_nnef.documents.saver", "tract_nnef.documents.writer")
    assert [name for name in imported if name.split(".")[0] in unwanted or name in unwanted] == []


def test_loading_imports_the_families_of_the_operators_that_are_there(imported) -> None:
    families = {name.removeprefix("tract_nnef.ops.") for name in imported if name.startswith("tract_nnef.ops.")}
    assert {"variable", "binary", "elementwise"} <= families
    assert not {"conv", "pool", "scan", "recurrent", "einsum", "roi"} & families
    assert not [name for name in imported if name.startswith("tract_nnef.schema")]
