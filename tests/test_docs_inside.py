"""The pages for whoever changes a plugin: what they print is what their code gives, and they are short and whole.

A block ``text printed`` is what the block of Python in front of it prints; ``TRACT_WRITE_GOLDEN=1`` writes it anew.
"""

from __future__ import annotations

import os
import re
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "inside").glob("*.md"))
PRINTING = [page for page in PAGES if page.stem != "cpu"]
"""The texts of `cpu.md` are those of golden models: plugins/tract_cpu/tests/test_docs_inside.py."""

BLOCK = re.compile(r"^```(python|text printed)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SECTIONS = ["Looking for a mistake", "Where does it go?", "Limits"]
"""How the sections at the end of a page are called."""

LONGEST = 150
"""Lines of a page."""

WITHOUT_PAGE = {"tract_compat"}
"""Plugins with nothing inside: the name `tract` for the public API."""


def package(page: Path) -> Path:
    """The folder of the plugin that a page is about."""
    return ROOT / "plugins" / f"tract_{page.stem}" / f"tract_{page.stem}"


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.torch] if page.stem == "torch" else [], id=page.stem) for page in PRINTING],
)
def test_what_a_page_prints_is_what_its_code_gives(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.stem == "torch" and find_spec("tract_torch") is None:
        pytest.skip("needs PyTorch: run `make test-torch`")
    monkeypatch.chdir(tmp_path)
    names, printed = dict[str, object](), StringIO()

    def true_block(block: re.Match[str]) -> str:
        nonlocal printed
        language, text = block.groups()
        if language == "python":
            printed = StringIO()
            with redirect_stdout(printed):
                exec(compile(text, str(page), "exec"), names)
            return block[0]
        return f"```text printed\n{printed.getvalue().rstrip()}\n```"

    text = page.read_text()
    found = BLOCK.sub(true_block, text)
    if os.environ.get("TRACT_WRITE_GOLDEN"):
        page.write_text(found)
    assert page.read_text() == found
    assert "```text printed" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_short_and_names_every_folder(page: Path) -> None:
    text = page.read_text()
    folders = [one.name for one in package(page).iterdir() if one.is_dir() and one.name not in {"cli", "__pycache__"}]
    assert len(text.splitlines()) <= LONGEST
    assert [one for one in folders if f"{package(page).name}/{one}" not in text and f"`{one}`" not in text] == []
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")][-len(SECTIONS) :] == SECTIONS
    assert "(../glossary.md" in text


def test_every_plugin_has_a_page() -> None:
    plugins = {path.name for path in (ROOT / "plugins").iterdir() if (path / "pyproject.toml").is_file()}
    assert {f"tract_{page.stem}" for page in PAGES} == plugins - WITHOUT_PAGE
