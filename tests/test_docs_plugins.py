"""The tutorials about plugins, followed by the letter, and the reference, compared with what there is."""

from __future__ import annotations

import ast
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
    variables["PYTHONDONTWRITEBYTECODE"] = "1"  # a file that changes twice in a second may have bytecode of before
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for name, value in {**variables, **pip}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "tutorial").mkdir()
    return tmp_path / "tutorial"


def run(command: str, folder: Path, status: int = 0) -> str:
    found = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=folder, timeout=300, check=False)
    assert found.returncode == status, f"$ {command}\n{found.stdout}{found.stderr}"
    return found.stdout + (found.stderr if status else "")


def pattern(shown: str) -> str:
    """What was shown, as a regular expression: ``...`` stands for anything, and runs of blanks for one another."""
    words = re.split(r"(\.\.\.|\s+)", shown.strip())
    return r"\s*" + "".join(_pattern_of(word) for word in words) + r"\s*"


def _pattern_of(word: str) -> str:
    if word == "...":
        return r"(?s:.*)"
    return r"\s*" if not word.strip() else re.escape(word)


SHORT = (Path(__file__).parents[1] / "docs" / "tutorials" / "write-an-operator-and-a-runtime.md").read_text()


@pytest.mark.parametrize("page", [TUTORIAL, SHORT], ids=["plugins", "write-an-operator-and-a-runtime"])
def test_the_tutorial_works(folder: Path, page: str):
    for language, kind, name, text in BLOCK.findall(page):
        if kind:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(path.read_text() + "\n\n" + text if kind == "append" else text)
            continue
        assert language == "console", text
        commands = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
        for command, _, shown in (one.partition("\n") for one in commands):
            found = run(command, folder)
            assert re.fullmatch(pattern(shown), found), f"$ {command}\n{found}\nwanted:\n{shown}"


SHORTEST = {name: text for _, kind, name, text in BLOCK.findall(TUTORIAL) if kind and name.startswith("tract-soften/")}
PLUGIN, SOFTEN = "tract-soften/tract_soften/plugin.py", "tract-soften/tract_soften/soften.py"


def test_an_operator_with_importer_rule_and_case_takes_fifty_lines():
    code = [text for name, text in SHORTEST.items() if name.endswith(".py")]
    assert len(code) == 2
    assert sum(len(text.splitlines()) for text in code) <= 50


def test_an_operator_that_is_fused_takes_less_than_forty_lines():
    blocks = [text for _, kind, name, text in BLOCK.findall(TUTORIAL) if kind and name.startswith("tract-mish/")]
    assert len(blocks) == 2
    assert sum(len(text.splitlines()) for text in blocks) < 40


FUSE = Path(__file__).parents[1] / "examples" / "plugins" / "tract_fuse" / "tract_fuse"


def test_the_runtime_that_fuses_is_what_the_page_shows_of_it():
    section = REFERENCE.split("### What compilers share\n")[1].split("\n### ")[0]
    shown = [line.strip() for _, _, _, text in BLOCK.findall(section) for line in text.splitlines()]
    written = {line.strip() for path in FUSE.glob("*.py") for line in path.read_text().splitlines()}
    assert len(shown) >= 6
    assert not set(shown) - written


def test_the_runtime_that_fuses_takes_less_than_two_hundred_lines():
    assert sum(_lines_of_code(path.read_text()) for path in FUSE.glob("*.py")) < 200


def _lines_of_code(text: str) -> int:
    """Without comments, docstrings and empty lines: what is left is the program."""
    tree = ast.parse(text)
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    without = {line for node in texts for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    lines = enumerate(text.splitlines(), 1)
    return sum(line.strip() != "" and not line.strip().startswith("#") and n not in without for n, line in lines)


def test_all_modules_that_compilers_share_are_listed():
    listed = REFERENCE.split("### What compilers share\n")[1].split("\n### ")[0]
    modules = {path.stem for path in (Path(__file__).parents[1] / "tract_core" / "compile").glob("[a-z]*.py")}
    assert set(re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE)) == modules


MISTAKES = {
    "a hook": (
        PLUGIN,
        "def tract_rows",
        "def tract_row",
        "there is no hook 'tract_row'",
        "'tract_rows'?",
    ),
    "a hook without its mark": (
        PLUGIN,
        "@hookimpl\ndef tract_rows",
        "def tract_rows",
        "is not marked as a hook",
        "@hookimpl above it",
    ),
    "a table": (
        PLUGIN,
        '"declutter"',
        '"decluter"',
        "for the table 'decluter', which nobody asks",
        "mean 'declutter'?",
    ),
    "a module": (
        PLUGIN,
        "tract_soften.soften",
        "tract_soften.softn",
        "No module named 'tract_soften.softn'",
        "BLOCK=soften",
    ),
    "an operator that can change": (
        SOFTEN,
        "(frozen=True)",
        "",
        "it is a dataclass that can be changed",
        "frozen=True",
    ),
    "no meaning": (
        SOFTEN,
        "@ROWS.row(REFERENCE, Soften)\n",
        "",
        "Soften has no row in 'reference' or 'state'",
        "add one: ",
    ),
    "a rule without types": (
        SOFTEN,
        "@rewrites(Soften)",
        "@rewrites",
        "is given 'soften_by_nothing'",
        "@rewrites(Relu)",
    ),
    "a row without table": (
        SOFTEN,
        "row(REFERENCE, Soften)",
        "row(Soften)",
        "found Soften",
        "@ROWS.row(REFERENCE, Op)",
    ),
    "a case for a list": (
        SOFTEN,
        '"soften", [Case(',
        '"soften", (Case(',
        "is one Case, wanted a list of Case",
        "a row says",
    ),
    "an operator of the standard": (
        SOFTEN,
        '"Soften", domain="org.example"',
        '"Relu"',
        "both tract-onnx and tract-soften have a row for ai.onnx/Relu/1; that of tract-onnx is used",
        "take that of tract-soften out",
    ),
}


@pytest.fixture
def shortest(folder: Path) -> Path:
    for name, text in SHORTEST.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "tract-soften" / "tract_soften" / "__init__.py").touch()
    run("python -m pip install -e ./tract-soften", folder)
    return folder


def test_mistakes_are_told_as_what_they_are(shortest: Path):
    """Each of the mistakes, made in the plugin of fifty lines: what ``tract plugins --check`` says of it."""
    for name, (file, right, wrong, cause, fix) in MISTAKES.items():
        assert right in SHORTEST[file], name
        text = SHORTEST[file].replace(right, wrong)
        if "(Case(" in wrong:
            text = text.replace('{"B": 4})])', '{"B": 4})))')
        (shortest / file).write_text(text)
        found = run("tract plugins --check", shortest, status=1)
        (shortest / file).write_text(SHORTEST[file])
        assert all(part in found for part in (cause, fix, "soften (tract-soften 0.1.0): ")), (name, found)


def test_the_tutorial_has_all_its_parts():
    steps = TUTORIAL.split("\n## Tutorial\n")[1]
    titles = [name for _, kind, name, _ in BLOCK.findall(steps) if kind == "title"]
    assert titles[0] == "pyproject.toml"
    assert len(titles) >= 10
    assert len(re.findall(r"^\$ ", TUTORIAL, re.MULTILINE)) >= 10


def test_the_reference_lists_every_hook():
    hooks = {name for name in vars(hookspecs) if name.startswith("tract_")}
    assert set(re.findall(r"^\| `(tract_\w+)` \|", REFERENCE, re.MULTILINE)) == hooks


def test_the_reference_lists_every_table_of_the_core():
    keys = "operator|the rule|a family|a runtime|an engine"
    assert set(re.findall(rf"^\| `(\w+)` \| (?:{keys})", REFERENCE, re.MULTILINE)) == set(builtin.tract_tables())
