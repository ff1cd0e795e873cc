"""Public names are read from stubs without a parser of Python: what one finds there is what is shown."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUBS = sorted([*ROOT.glob("tract_core/**/__init__.pyi"), *ROOT.glob("plugins/*/tract_*/**/__init__.pyi")])


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.parent.name)
def test_what_a_parser_finds_is_shown(stub: Path) -> None:
    top = ROOT if stub.is_relative_to(ROOT / "tract_core") else stub.relative_to(ROOT).parts[1]
    folder = ROOT if top is ROOT else ROOT / "plugins" / str(top)
    package = ".".join(stub.parent.relative_to(folder).parts)
    try:
        shown = set(dir(importlib.import_module(package)))
    except ImportError as error:
        pytest.skip(f"it needs {error.name}")
    imports = [one for one in ast.parse(stub.read_text()).body if isinstance(one, ast.ImportFrom)]
    names = {name.name for one in imports for name in one.names if name.asname == name.name}
    assert names
    assert names <= shown
