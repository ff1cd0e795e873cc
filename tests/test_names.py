"""One name for one thing: no two public classes of a distribution, or of one and what it builds on, have one name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    path.name: path for path in [ROOT / "tract_core", *sorted((ROOT / "plugins").glob("*/tract*"))] if path.is_dir()
}
BUILDS_ON = {"tract_cpu": ["tract_core", "tract_llvm"], "tract_cuda": ["tract_core", "tract_llvm"], "tract_core": []}

HANDLES = {"Fact", "InferenceFact", "InferenceModel", "Runtime", "FloatPrecision", "SetSymbols", "Pulse"}
"""What users hold is called as what it holds, or makes: the one is public, the other is inside."""

TERMS = {
    "Binary", "Graph", "Parameter", "Range",  # of a syntax tree; of CUDA's driver; of PyTorch
    "Function", "Variable", "Format", "Kind",  # of a language for loops, of numbers, of memory
    "Layout", "Tile", "Product", "Pool", "Sizes", "Window", "Row", "Entry",
    "Runtime", "Step", "Timing",  # of policies for many agents
    "Interface", "Found", "Refused", "Side", "Unknown",
}  # fmt: skip
"""Terms of a distribution's own field, which nothing in it takes for those of the core."""


def classes(package: str) -> Iterator[tuple[str, str]]:
    """Name and file of each public class."""
    for path in sorted(PACKAGES[package].rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, str(path.relative_to(ROOT))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_is_that_of_one_class(package: str) -> None:
    found = dict[str, list[str]]()
    for name, path in classes(package):
        found.setdefault(name, []).append(path)
    assert {name: paths for name, paths in found.items() if len(paths) > 1 and name not in HANDLES} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_class_is_called_as_one_of_what_it_builds_on(package: str) -> None:
    below = {name for one in BUILDS_ON.get(package, ["tract_core"]) for name, _ in classes(one)}
    found = {name: path for name, path in classes(package) if name in below - HANDLES - TERMS}
    assert found == {}
