"""``docs/torch.md`` says which operators are imported. Its counts are those of the last run of its generator."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import torch
from catalogue import CATALOGUE

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "torch.md").read_text()
HINT = "run `python docs/generate_torch.py`"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_torch", ROOT / "docs" / "generate_torch.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed(page: str) -> dict[str, str]:
    """Each core operator in the table of the page, and how it is imported."""
    return dict(re.findall(r"^\| `(\w+)` \| (whole|decomposed|\*\*no\*\*) \| (?:\d+|-) \|$", page, re.MULTILINE))


def test_every_core_operator_is_listed_as_it_is_imported(generator: ModuleType) -> None:
    core = generator.core_operators()
    assert listed(PAGE) == {name: way or "**no**" for name, way in generator.ways(core).items()}, HINT
    assert len(core) >= 150


def test_the_counts_are_those_of_the_table(generator: ModuleType) -> None:
    told = re.search(
        r"Of the (\d+) core ATen operators of PyTorch ([\d.]+) .*?, (\d+) are imported. "
        r"The catalogue has more than (\d+) entries for more than (\d+) names.",
        " ".join(PAGE.split()),
    )
    assert told is not None
    rows = listed(PAGE)
    assert (int(told[1]), int(told[3])) == (len(rows), sum(way != "**no**" for way in rows.values()))
    assert told[2] == torch.__version__.partition("+")[0], HINT
    names = {str(entry).partition(",")[0] for entry in CATALOGUE}
    assert len(CATALOGUE) > int(told[4]) >= 1000
    assert len(names) > int(told[5]) >= 400


def test_a_row_that_is_gone_is_noticed(generator: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "_has_row", lambda name: name != "aten.gelu.default")
    assert listed(PAGE) != generator.ways(generator.core_operators())
