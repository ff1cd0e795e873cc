"""How Sphinx makes the site of the pages in this folder: ``make site``. What is our own is in `building`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import tract_core

project = "tract for Python"
author = "the authors of tract for Python"
project_copyright = author
release = tract_core.version()
language = "en"
smartquotes = False  # of --set, one is made of two

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "building.command_help",
    "building.page_heads",
    "building.pages_elsewhere",
    "building.public_names",
]
exclude_patterns = ["building", "_static", "_templates"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 6

default_role = "py:obj"
autodoc_mock_imports = ["dask", "ray", "safetensors", "sympy", "torch", "torchvision", "transformers"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries = False  # names have headings; members would be copied into the tree of pages of every page

html_baseurl = os.environ.get("TRACT_SITE_URL", "")
html_theme = "furo"
html_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_additional_pages = {"404": "404.html"}
html_context = {"front": f"{html_baseurl}index.html"}
html_theme_options = {"footer_icons": []}
pygments_dark_style = "github-dark"
copybutton_prompt_text = "$ "  # lines without it are what was printed
