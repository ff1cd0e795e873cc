"""The limits of the house: short files, short functions, no import of heavy things at start."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for folder in ("tract_core", "plugins", "tests", "examples", "bench")
    for path in (ROOT / folder).rglob("*.py")
    if ".venv" not in path.parts
)
LIBRARY = [path for path in SOURCES if path.parts[len(ROOT.parts)] in ("tract_core", "plugins")]


def test_no_file_is_longer_than_600_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in SOURCES}
    assert not {path: length for path, length in lengths.items() if length > 600}


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in LIBRARY
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno - node.lineno >= 60
    ]
    assert not long


MANY_MODULES = {
    *("tract_core/ops", "tract_core/testing/cases", "plugins/tract_cpu/tract_cpu/lower"),
    *(f"plugins/tract_{name}/tract_{name}/ops" for name in ("nnef", "onnx", "torch")),
    "plugins/tract_onnx/tract_onnx/writing/ops",
    *(f"plugins/tract_tensorflow/tract_tensorflow/{kind}/ops" for kind in ("graphdef", "tflite")),
}
"""Folders with a module for each operator family."""

FEW_FUNCTIONS = 12
"""A folder with fewer has no median worth the name."""


def lengths_of_functions(path: Path) -> list[int]:
    """Lines of the bodies of a module's functions, docstrings aside."""
    found = list[int]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[ast.get_docstring(node) is not None :]
            found.append(sum(one.end_lineno - one.lineno + 1 for one in body))
    return found


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in LIBRARY if not {"tests", "tools"} & {*path.parts}}),
    ids=lambda one: one.name,
)
def test_a_folder_is_seen_at_a_glance(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    lengths = sorted(length for path in modules for length in lengths_of_functions(path))
    assert len(modules) <= 40 or str(folder.relative_to(ROOT)) in MANY_MODULES
    if len(lengths) >= FEW_FUNCTIONS:
        assert statistics.median(lengths) <= 6
        assert sum(length < 20 for length in lengths) >= 0.9 * len(lengths)


def test_every_target_of_the_makefile_has_a_rule_and_a_line_of_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert set(phony.split()) - set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)) == set()


def loaded_by(statement: str, *arguments: str) -> set[str]:
    """The modules that a fresh interpreter holds after ``statement``."""
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    return set(subprocess.check_output([sys.executable, "-c", code, *arguments], text=True).split())


def test_importing_the_core_loads_nothing_heavy() -> None:
    assert not loaded_by("import tract_core") & {"numpy", "ml_dtypes", "onnx", "rich", "click", "tract_onnx"}


def test_loading_a_model_loads_the_modules_of_its_operators() -> None:
    model = ROOT / "examples" / "digits" / "digits.onnx"
    prepare = "tract.runtime_for_name('reference').prepare(tract.onnx().load(sys.argv[1]).into_model())"
    loaded = loaded_by(f"import tract_core as tract; {prepare}", str(model))
    rows = ("tract_core.ops.", "tract_core.rules.", "tract_onnx.ops.", "tract_onnx.onnx_only.")
    assert "tract_core.ops.conv" in loaded
    assert len([name for name in loaded if name.startswith(rows)]) < 60
    others = {f"tract_core.ops.{family}" for family in ("fft", "loop", "quantize", "resize", "scan", "sequence")}
    assert not loaded & {*others, "difflib", "html", "numpy.ma", "rich", "tract_core.analysis.findings"}


@pytest.mark.parametrize("module", ["onnx", "rich.console", "tract_onnx.frontend", "numpy"])
def test_the_help_loads_nothing_heavy(module: str) -> None:
    imports = "from click.testing import CliRunner; from tract_core.cli.frame import app"
    assert module not in loaded_by(f"{imports}; CliRunner().invoke(app, ['-h'])")


def test_the_architecture_says_what_every_folder_is_for() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    ignored = {"__pycache__", *(line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines())}

    def folders(of: Path) -> set[str]:
        found = [one for one in of.iterdir() if one.is_dir() and one.name not in ignored and one.name[0] != "."]
        return {str(one.relative_to(ROOT)) for one in found}

    there = folders(ROOT) - {"tract_core", "plugins"} | folders(ROOT / "tract_core") | folders(ROOT / "plugins")
    rows = set(re.findall(r"^\| `([\w/]+)` \|", page, re.MULTILINE))
    assert there <= rows
    assert all((ROOT / row).is_dir() for row in rows if "/" in row)
