"""``tract init plugin NAME``: a folder that is complete, or none."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tract_core.cli import app


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert not [path for path in tmp_path.iterdir() if "unfinished" in path.name]


def made(*arguments: str, status: int = 0) -> str:
    found = CliRunner().invoke(app, ["init", "plugin", *arguments])
    assert found.exit_code == status, found.output
    return found.output


@pytest.mark.parametrize("name", ["soft-clip", "tract-soft-clip", "soft_clip"])
def test_a_plugin(name: str, tmp_path: Path) -> None:
    made(name)
    folder = tmp_path / "tract-soft-clip"
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    package = [f"tract_soft_clip/{one}.py" for one in ("__init__", "cases", "importer", "plugin", "rules", "soft_clip")]
    assert files == ["README.md", "pyproject.toml", "tests/test_soft_clip.py", *package]
    for path in folder.rglob("*.py"):
        compile(path.read_text(), path, "exec")
        assert "$" not in path.read_text()
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["tract"] == {"soft-clip": "tract_soft_clip.plugin"}
    assert "pip install" in made("other", "-o", "elsewhere")
    assert (tmp_path / "elsewhere" / "tract_other").is_dir()


@pytest.mark.parametrize("name", ["Soft", "soft clip", "1d", "soft-", "../soft", "class", "-x", ""])
def test_what_is_no_name(name: str, tmp_path: Path) -> None:
    assert "Error" in made("--", name, status=2)
    assert not list(tmp_path.iterdir())


def test_names_that_are_taken(tmp_path: Path) -> None:
    assert "a plugin 'onnx' is installed already" in made("onnx", status=2)
    (tmp_path / "tract-mine").mkdir()
    assert "never written over" in made("mine", status=1)
    assert "Missing argument 'NAME'" in made(status=2)
