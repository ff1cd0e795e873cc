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


@pytest.mark.parametrize("module", [module_of(stub) for stub in STUBS])
def test_every_list_of_public_names_has_a_page(module: str) -> None:
    """The site itself warns of a name that such a page leaves out, and no warning passes."""
    assert f":::{{public-names}} {module}\n" in (DOCS / "api" / f"{module}.md").read_text()
    listed = (DOCS / "building" / "public_names.py").read_text().split("MODULES: Final = (")[1].split("\n)\n")[0]
    assert f'"{module}"' in listed


def test_there_are_stubs() -> None:
    assert len(STUBS) >= 12


@pytest.mark.parametrize("page", ["operators", "tensorflow"])
def test_a_page_of_operators_is_what_the_tables_have(page: str) -> None:
    spec = importlib.util.spec_from_file_location(f"generate_{page}", DOCS / f"generate_{page}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / f"{page}.md").read_text() == module.page(), f"run `python docs/generate_{page}.py`"


def test_the_front_page_runs_a_model_in_three_lines() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL)
    assert sum(not line.startswith("import ") for line in block.split("\n") if line) == 3


BUILT = ("index", "tutorials/run-a-model", "api/tract_ray", "decisions/README")
"""Pages that are written; all are read."""


MISTAKES = """\
# Mistakes

Links to [no page](nowhere.md), [no heading](pulse.md#nothing-of-this-name), [no folder](../examples/nowhere)
and [no file](../examples/digits/nothing.onnx).
"""

REFUSED = (
    r"mistakes.md:3: WARNING: .*nowhere.md",
    r"mistakes.md:3: WARNING: .*nothing-of-this-name",
    r"mistakes.md:3: WARNING: .*examples/nowhere",
    r"mistakes.md:3: WARNING: .*nothing.onnx",
    r"lost.md: WARNING: document isn't included in any toctree",
    r"WARNING: the public name tract_cpu.load_compiled is on no page",
)


def test_a_site_with_mistakes(tmp_path: Path) -> None:
    """One site for all that there is to see: mistakes are refused, and pages hold what they must."""
    if not PYTHON.with_name("sphinx-build").exists():
        pytest.skip("needs what makes the site: run `make site`")
    html, said = built_with_mistakes(tmp_path)
    assert [pattern for pattern in REFUSED if not re.search(pattern, said)] == [], said
    known = "mistakes.md|lost.md|public name tract_cpu|the index will be incomplete"
    assert [line for line in said.splitlines() if "WARNING" in line and not re.search(known, line)] == []
    for page in BUILT:
        loads_nothing_from_elsewhere(html / f"{page}.html")
        says_what_it_is((html / f"{page}.html").read_text())
    links_to_files_lead_to_copies(html)
    without = (html / "404.html").read_text()
    assert "No such page" in without
    assert not re.search(r"src=|<link", without)


def built_with_mistakes(folder: Path) -> tuple[Path, str]:
    """Where the pages are, and what was said."""
    for path in ROOT.iterdir():
        if path.name not in ("docs", ".site", ".git"):
            (folder / path.name).symlink_to(path)
    docs, html = folder / "docs", folder / "html"
    shutil.copytree(DOCS, docs, ignore=shutil.ignore_patterns("__pycache__"))
    (docs / "mistakes.md").write_text(MISTAKES)
    (docs / "deep").mkdir()
    (docs / "deep" / "lost.md").write_text("# Lost\n\nIn no list of pages.\n")
    (docs / "api" / "tract_cpu.md").write_text("# `tract_cpu`\n\nWithout its names.\n")
    options = ["--fail-on-warning", "--quiet", "--doctree-dir", folder / "trees"]
    pages = [docs / f"{page}.md" for page in (*BUILT, "mistakes")]
    command = [PYTHON, "-m", "sphinx", *options, docs, html, *pages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    return html, done.stderr


def loads_nothing_from_elsewhere(page: Path) -> None:
    """No script, style, font or picture of another host."""
    loaded = re.findall(r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=\"([^\"]+)\"", page.read_text())
    assert len(loaded) > 5
    assert [one for one in loaded if re.match(r"(?:\w+:)?//", one)] == []
    styles = [page.parent / one.partition("?")[0] for one in loaded if ".css" in one]
    assert len(styles) > 1
    assert not [path for path in styles if re.search(r"url\(\s*['\"]?(?:https?:)?//|@import", path.read_text())]


def says_what_it_is(text: str) -> None:
    """Its title, its description, its language."""
    assert re.search(r"<title>[^<]*tract for Python</title>", text)
    assert re.search(r'<meta name="description" content="[^"]{20,210}">', text)
    assert 'lang="en"' in text


def links_to_files_lead_to_copies(html: Path) -> None:
    """A page of the site can be read without the repository."""
    text = (html / "tutorials" / "run-a-model.html").read_text()
    (copy,) = set(re.findall(r'href="\.\./(_downloads/\w+/digits\.onnx)"', text))
    assert (html / copy).read_bytes() == (ROOT / "examples" / "digits" / "digits.onnx").read_bytes()


@pytest.mark.parametrize("page", ["howto/README.md", "examples.md"])
def test_lists_of_pages_are_whole(page: str) -> None:
    """On a code host, where nothing else leads to them."""
    text, folder = (DOCS / page).read_text(), (DOCS / page).parent
    linked = {(folder / one).resolve() for one in re.findall(r"\]\(([^)#]+)\)", text)}
    if page == "examples.md":
        there = {one.parent for one in ROOT.glob("examples/**/README.md")}
    else:
        there = {one for one in folder.glob("*.md") if one.name != "README.md"}
    assert there
    assert there <= linked
