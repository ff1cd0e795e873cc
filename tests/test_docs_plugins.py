"""The tutorial of ``docs/plugins.md``, followed by the letter, and its reference, compared with what there is."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tract_core.plugins import builtin, hookspecs

PAGE = (Path(__file__).parents[1] / "docs" / "plugins.md").read_text()
TUTORIAL, REFERENCE = PAGE.split("\n## Reference\n")
BLOCK = re.compile(r"^```(\w+)(?: (title|append)=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_environment: Callable[[Path], Path]) -> Path:
    """An empty folder, and an environment that sees our distributions; nothing is fetched from anywhere."""
    python = fresh_environment(tmp_path / "venv")
    scripts = python.parent
    command = scripts / "tract"
    command.write_text(f"#!{python}\nfrom tract_core.cli import main\nmain()\n")
    command.chmod(0o755)
    for name in [name for name in os.environ if name.startswith(("TRACT_", "PIP_"))]:
        monkeypatch.delenv(name)
    variables = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "200"}
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for name, value in {**variables, **pip}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "tutorial").mkdir()
    return tmp_path / "tutorial"


def run(command: str, folder: Path) -> str:
    found = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=folder, timeout=300, check=False)
    assert found.returncode == 0, f"$ {command}\n{found.stdout}{found.stderr}"
    return found.stdout


def pattern(shown: str) -> str:
    """What was shown, as a regular expression: ``...`` stands for anything, and runs of blanks for one another."""
    words = re.split(r"(\.\.\.|\s+)", shown.strip())
    return r"\s*" + "".join(_pattern_of(word) for word in words) + r"\s*"


def _pattern_of(word: str) -> str:
    if word == "...":
        return r"(?s:.*)"
    return r"\s*" if not word.strip() else re.escape(word)


def test_the_tutorial_works(folder: Path):
    for language, kind, name, text in BLOCK.findall(TUTORIAL):
        if kind:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(path.read_text() + "\n\n" + text if kind == "append" else text)
            continue
        assert language == "console", text
        commands = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
        for command, _, shown in (one.partition("\n") for one in commands):
            found = run(command, folder)
            assert re.fullmatch(pattern(shown), found), f"$ {command}\n{found}\nwanted:\n{shown}"


def test_the_tutorial_has_all_its_parts():
    titles = [name for _, kind, name, _ in BLOCK.findall(TUTORIAL) if kind == "title"]
    assert titles[0] == "pyproject.toml"
    assert len(titles) >= 10
    assert len(re.findall(r"^\$ ", TUTORIAL, re.MULTILINE)) >= 10


def test_the_reference_lists_every_hook():
    hooks = {name for name in vars(hookspecs) if name.startswith("tract_")}
    assert set(re.findall(r"^\| `(tract_\w+)` \|", REFERENCE, re.MULTILINE)) == hooks


def test_the_reference_lists_every_table_of_the_core():
    keys = "operator|the rule|a family|a runtime|an engine"
    assert set(re.findall(rf"^\| `(\w+)` \| (?:{keys})", REFERENCE, re.MULTILINE)) == set(builtin.tract_tables())
