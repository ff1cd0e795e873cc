"""Distributions made of a few lines, put on the path for one test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

Install = Callable[..., None]

PREAMBLE = """
from tract_core.plugins import hookimpl

@hookimpl
def tract_api_version():
    return "1.0"
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """``install("demo", plugin="...", ops="...")``: modules ``demo_plugin`` and ``demo_ops``, the first an entry point.

    ``plugin`` is the text of the hooks, after a `tract_api_version`; ``entry_points`` replaces the file of that name.
    """
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    before = set(sys.modules)

    def install(
        name: str, *, plugin: str = "", preamble: str = PREAMBLE, entry_points: str | None = None, **modules: str
    ):
        info = site / f"tract_{name}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tract-{name}\nVersion: 1.2\n")
        text = f"[tract]\n{name} = {name}_plugin\n" if entry_points is None else entry_points
        (info / "entry_points.txt").write_text(text)
        for part, source in {"plugin": preamble + dedent(plugin), **modules}.items():
            (site / f"{name}_{part}.py").write_text(dedent(source))
        sys.path_importer_cache.clear()

    yield install
    for module in set(sys.modules) - before:
        if getattr(sys.modules[module], "__file__", None) and str(site) in str(sys.modules[module].__file__):
            del sys.modules[module]
