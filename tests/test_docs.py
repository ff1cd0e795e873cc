"""What the documents show is run: Python blocks, and the lines that call the command."""

from __future__ import annotations

import pkgutil
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tract_core.cli.frame import app

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    ROOT / name
    for name in (
        "README.md",
        "docs/architecture.md",
        "docs/inferers.md",
        "docs/onnx.md",
        "docs/pulse.md",
        "docs/security.md",
        "examples/digits/README.md",
    )
]

PYTHON = [
    pytest.param(block, id=f"{path.name}-{number}")
    for path in DOCUMENTS
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL))
]
COMMANDS = [
    pytest.param(line, id=line)
    for path in DOCUMENTS
    for line in re.findall(r"^\$ (tract [^#\n]*)", path.read_text(), re.MULTILINE)
]


@pytest.mark.parametrize("block", PYTHON)
def test_python_block(block: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    if "import torch" in block:
        pytest.importorskip("tract_torch", reason="needs PyTorch: run `make test-torch`")
    exec(compile(block, "document", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"print\(.*\)\s+# (.*)", block)
    assert printed == promised


@pytest.mark.parametrize("line", COMMANDS)
def test_command(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)  # what a command writes does not stay
    result = CliRunner().invoke(app, shlex.split(line)[1:])
    assert result.exit_code == 0, result.output


def test_links_lead_somewhere() -> None:
    for path in [*DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "docs" / "plugins.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert target.startswith("http") or (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_distribution_is_in_the_readme_and_every_extra_exists() -> None:
    import tomllib

    readme = (ROOT / "README.md").read_text()
    names = {tomllib.loads(path.read_text())["project"]["name"] for path in (ROOT / "plugins").glob("*/pyproject.toml")}
    assert all(f"`{name}`" in readme for name in names)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = [requirement for requirements in extras.values() for requirement in requirements]
    assert {requirement.partition(">")[0] for requirement in wanted} == names


GLOSSARY = re.findall(r"^\| ([^|]+) \| [^|]+ \| `([\w.]+)` \|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("word", "place"), GLOSSARY, ids=[word for word, _ in GLOSSARY])
def test_words_lead_to_what_they_mean(word: str, place: str) -> None:
    assert pkgutil.resolve_name(place) is not None


def test_every_word_has_one_meaning() -> None:
    words = [word for word, _ in GLOSSARY]
    lines = (ROOT / "docs/glossary.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| word ")]
    assert len(words) == len(rows)
    assert len(set(words)) == len(words)
