"""Modules are imported while nobody looks for garbage; afterwards all is as it was."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tract_core.importing import imported

MAKES_MANY = """
import gc
from tract_core.importing import imported
before = sum(one["collections"] for one in gc.get_stats())
kept = [[] for _ in range(100_000)]
collected = sum(one["collections"] for one in gc.get_stats()) - before
inner = imported("inner")
was_on = gc.isenabled()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "many.py").write_text(MAKES_MANY)
    (tmp_path / "inner.py").write_text("NUMBER = 3\n")
    (tmp_path / "fails.py").write_text("raise ValueError('as it is written')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert gc.isenabled()
    yield tmp_path
    gc.enable()
    for name in ("many", "inner", "fails"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("folder")
def test_nothing_is_collected_meanwhile_also_after_an_import_inside() -> None:
    module = imported("many")
    assert (module.collected, module.was_on, module.inner.NUMBER) == (0, False, 3)
    assert gc.isenabled()


@pytest.mark.usefixtures("folder")
def test_collecting_goes_on_after_a_module_that_fails() -> None:
    with pytest.raises(ValueError, match="as it is written"):
        imported("fails")
    assert gc.isenabled()


@pytest.mark.usefixtures("folder")
def test_who_has_switched_it_off_finds_it_so() -> None:
    gc.disable()
    imported("inner")
    assert not gc.isenabled()
