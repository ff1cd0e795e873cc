"""The site: which names it has, and what ``make site`` refuses. What builds it is there once ``make site`` was run."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PYTHON = ROOT / ".venv-site" / "bin" / "python"

STUBS = sorted(
    path for folder in (ROOT / "tract_core", *ROOT.glob("plugins/*/tract*")) for path in folder.rglob("*.pyi")
)


def module_of(stub: Path) -> str:
    """The module that a stub is of."""
    parts = stub.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[2:] if parts[0] == "plugins" else parts).removesuffix(".__init__")


@pytest.mark.parametrize("module", map(module_of, STUBS))
def test_every_list_of_public_names_has_a_page(module: str) -> None:
    """The site itself warns of a name that such a page leaves out, and no warning passes."""
    assert f":::{{public-names}} {module}\n" in (DOCS / "api" / f"{module}.md").read_text()
    listed = (DOCS / "building" / "public_names.py").read_text().split("MODULES: Final = (")[1].split("\n)\n")[0]
    assert f'"{module}"' in listed


def test_there_are_stubs() -> None:
    assert len(STUBS) >= 12


def test_the_page_of_operators_is_what_the_tables_have() -> None:
    spec = importlib.util.spec_from_file_location("generate_operators", DOCS / "generate_operators.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "operators.md").read_text() == module.page(), "run `python docs/generate_operators.py`"


def test_the_front_page_runs_a_model_in_three_lines() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL)
    assert sum(not line.startswith("import ") for line in block.split("\n") if line) == 3


BUILT = ("index", "tutorials/run-a-model", "api/tract_ray", "decisions/README")
"""Pages that are written; all are read."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A few pages of a site with mistakes, and what was said of these."""
    if not PYTHON.with_name("sphinx-build").exists():
        pytest.skip("needs what makes the site: run `make site`")
    folder = tmp_path_factory.mktemp("site")
    for path in ROOT.iterdir():
        if path.name not in ("docs", ".site", ".git"):
            (folder / path.name).symlink_to(path)
    docs = folder / "docs"
    shutil.copytree(DOCS, docs, ignore=shutil.ignore_patterns("__pycache__"))
    (docs / "mistakes.md").write_text(MISTAKES)
    (docs / "deep").mkdir()
    (docs / "deep" / "lost.md").write_text("# Lost\n\nIn no list of pages.\n")
    (docs / "api" / "tract_cpu.md").write_text("# `tract_cpu`\n\nWithout its names.\n")
    pages = [docs / f"{page}.md" for page in (*BUILT, "mistakes")]
    command = [
        PYTHON,
        "-m",
        "sphinx",
        "--fail-on-warning",
        "--quiet",
        "--doctree-dir",
        folder / "trees",
        docs,
        folder / "html",
    ]
    done = subprocess.run([*command, *pages], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    return folder / "html", done.stderr


MISTAKES = """\
# Mistakes

Links to [no page](nowhere.md), [no heading](pulse.md#nothing-of-this-name), [no folder](../examples/nowhere)
and [no file](../examples/digits/nothing.onnx).
"""


@pytest.mark.parametrize(
    "said",
    [
        r"mistakes.md:3: WARNING: .*nowhere.md",
        r"mistakes.md:3: WARNING: .*nothing-of-this-name",
        r"mistakes.md:3: WARNING: .*examples/nowhere",
        r"mistakes.md:3: WARNING: .*nothing.onnx",
        r"lost.md: WARNING: document isn't included in any toctree",
        r"WARNING: the public name tract_cpu.load_compiled is on no page",
    ],
)
def test_mistakes_are_refused(built: tuple[Path, str], said: str) -> None:
    assert re.search(said, built[1]), built[1]


def test_nothing_else_is_refused(built: tuple[Path, str]) -> None:
    known = "mistakes.md|lost.md|public name tract_cpu|the index will be incomplete"
    assert [line for line in built[1].splitlines() if "WARNING" in line and not re.search(known, line)] == []


@pytest.mark.parametrize("page", BUILT)
def test_a_page_loads_nothing_from_elsewhere(built: tuple[Path, str], page: str) -> None:
    text = (built[0] / f"{page}.html").read_text()
    loaded = re.findall(r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=\"([^\"]+)\"", text)
    assert len(loaded) > 5
    assert [one for one in loaded if re.match(r"(?:\w+:)?//", one)] == []
    styles = [(built[0] / page).parent / one.partition("?")[0] for one in loaded if ".css" in one]
    assert len(styles) > 1
    assert not [path for path in styles if re.search(r"url\(\s*['\"]?(?:https?:)?//|@import", path.read_text())]


@pytest.mark.parametrize("page", BUILT)
def test_a_page_says_what_it_is(built: tuple[Path, str], page: str) -> None:
    text = (built[0] / f"{page}.html").read_text()
    assert re.search(r"<title>[^<]*tract for Python</title>", text)
    assert re.search(r'<meta name="description" content="[^"]{20,210}">', text)
    assert 'lang="en"' in text


def test_links_to_folders_and_files_lead_to_pages_and_copies(built: tuple[Path, str]) -> None:
    text = (built[0] / "tutorials" / "run-a-model.html").read_text()
    (copy,) = set(re.findall(r'href="\.\./(_downloads/\w+/digits\.onnx)"', text))
    assert (built[0] / copy).read_bytes() == (ROOT / "examples" / "digits" / "digits.onnx").read_bytes()


def test_what_is_not_there_has_a_page_that_needs_no_other_file(built: tuple[Path, str]) -> None:
    text = (built[0] / "404.html").read_text()
    assert "No such page" in text
    assert not re.search(r"src=|<link", text)
