"""``docs/security.md`` says where each class of hostile input is tested: all are there, and so are the tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
DOCUMENT = (HERE.parents[2] / "docs" / "security.md").read_text()
CLASSES = {*range(1, 16), *range(17, 25), 26}
"""Those that concern files in the ONNX format, texts of NNEF, archives, arrays, and what is kept on disk."""


def names_in(part: str) -> set[str]:
    tree = ast.parse((HERE / f"test_hostile_{part}.py").read_text())
    return {node.name.removeprefix("test_") for node in tree.body if isinstance(node, ast.FunctionDef)}


def rows() -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in DOCUMENT.splitlines() if line.startswith("| ")]


def test_every_class_is_there():
    assert {int(found[1]) for row in rows() if (found := re.match(r"(\d+)\. ", row[0]))} == CLASSES


def test_every_test_is_there():
    places = [place for row in rows() for place in row[-1].split("; ") if re.match(r"[a-z]+: `", place)]
    assert len(places) > len(CLASSES)
    for place in places:
        part, _, names = place.partition(": ")
        assert set(re.findall(r"`(\w+)`", names)) <= names_in(part), place


def test_every_hostile_module_is_marked():
    for path in HERE.glob("test_hostile_*.py"):
        assert "\npytestmark = pytest.mark.hostile\n" in path.read_text(), path.name
