"""How Sphinx makes the site of the pages in this folder: ``make site``. What is our own is in `building`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "plugins" / "tract_torch")]  # PyTorch is in no need to be there

from tract_core.version import version as _version  # noqa: E402

project = "tract for Python"
author = "the authors of tract for Python"
project_copyright = author
release = _version()
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_click",
    "building.public_names",
    "building.pages_elsewhere",
]
exclude_patterns = ["building", "_templates"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 6

default_role = "py:obj"
autodoc_mock_imports = ["torch", "torchvision", "transformers", "ray", "dask", "safetensors", "sympy"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries = False  # names have headings; members would be copied into the tree of pages of every page

html_theme = "furo"
html_title = "tract for Python"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
