"""Pages of the repository that are not in the folder of the site, and what links to them and to other files become.

A page links to files as a code host shows them: ``../examples/agents``. In the site, a folder is its README, which is a
page too; a file is a copy of it. What is neither is a link that leads nowhere, and Sphinx warns of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Final

from docutils import nodes
from sphinx.addnodes import pending_xref, toctree
from sphinx.application import Sphinx
from sphinx.project import Project

ROOT: Final = Path(__file__).parents[2]

FOLDERS: Final = {
    "examples": "examples",
    "examples/plugins": "examples",
    "docs": "index",
    "docs/decisions": "decisions/README",
}
"""Folders that have no README, and the page that says what is in them."""


def pages() -> Iterator[tuple[Path, str]]:
    """The pages that lie elsewhere, from the root of the repository, and their names in the site."""
    for name in ("README", "CHANGELOG", "CONTRIBUTING"):
        yield ROOT / f"{name}.md", f"project/{name.lower()}"
    for readme in sorted([*ROOT.glob("examples/*/README.md"), *ROOT.glob("examples/plugins/*/README.md")]):
        yield readme, readme.parent.relative_to(ROOT).as_posix()
    for readme in sorted(ROOT.glob("plugins/*/README.md")):
        yield readme, f"distributions/{readme.parent.name}"


class Pages(Project):
    """The pages in the folder of the site, and those that lie elsewhere."""

    def discover(self, exclude_paths: Iterable[str] = (), include_paths: Iterable[str] = ("**",)) -> set[str]:
        """The names of all pages."""
        found = super().discover(exclude_paths, include_paths)
        for path, name in pages():
            place = Path(path.relative_to(self.srcdir.parent).as_posix())
            self._docname_to_path[name] = Path("..") / place
            self._path_to_docname[Path("..") / place] = self._path_to_docname[path] = name
            found.add(name)
        return found

    def path2doc(self, filename: str | PathLike[str]) -> str | None:
        """The name of the page of a file; no other file of the repository is one."""
        path = Path(filename)
        if path.is_absolute() and not path.is_relative_to(self.srcdir):
            return self._path_to_docname.get(path)
        return super().path2doc(filename)


def link_to_folders(app: Sphinx, doctree: nodes.document) -> None:
    """Links to a folder of the repository lead to the page that says what is in it."""
    project, here = app.project, Path(app.env.doc2path(app.env.docname)).parent
    for node in doctree.findall(pending_xref):
        path = (here / node["reftarget"]).resolve()
        if node["reftype"] != "myst" or node.get("refdomain") or not path.is_dir() or not path.is_relative_to(ROOT):
            continue
        name = project.path2doc(path / "README.md") or FOLDERS.get(path.relative_to(ROOT).as_posix())
        if name in project.docnames:
            node["refdomain"], node["reftarget"], node["reftargetid"] = "doc", name, None


def leave_to_their_list(app: Sphinx, _: nodes.document) -> None:
    """Decisions are many, and found by their list: a tree of pages on each page would be longer than most pages.

    The README stands beside the front page, which says the same in short.
    """
    if app.env.docname.startswith("decisions/0") or app.env.docname == "project/readme":
        app.env.metadata[app.env.docname]["orphan"] = ""


def keep_first(app: Sphinx, doctree: nodes.document) -> None:
    """A page that two lists of pages have is left in the first: so the last may take all that nobody has listed."""
    seen: set[str] = set()
    for tree in doctree.findall(toctree):
        tree["entries"] = [(title, name) for title, name in tree["entries"] if name not in seen]
        seen.update(name for _, name in tree["entries"])
        tree["includefiles"] = [name for _, name in tree["entries"]]


def use_pages(app: Sphinx) -> None:
    """Before anything is looked for."""
    app.project = app.env.project = Pages(app.srcdir, app.config.source_suffix)


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("builder-inited", use_pages)
    app.connect("doctree-read", link_to_folders)
    app.connect("doctree-read", keep_first, priority=100)  # before Sphinx notes them
    app.connect("doctree-read", leave_to_their_list)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
