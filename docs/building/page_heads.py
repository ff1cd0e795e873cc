"""What the head of a page says of it to those who search: its first paragraph, in a sentence or two."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from docutils import nodes
from sphinx.application import Sphinx

LONGEST: Final = 200
"""Characters, about as many as are shown of a page among others."""


def description(page: nodes.document) -> str:
    """The first paragraph that is more than a remark, cut between words; nothing for a page without one."""
    for paragraph in page.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > LONGEST // 5 and not isinstance(paragraph.parent, nodes.entry):
            return text if len(text) <= LONGEST else f"{text[:LONGEST].rpartition(' ')[0]} ..."
    return ""


def add_description(
    app: Sphinx, name: str, template: str, context: dict[str, Any], page: nodes.document | None
) -> None:
    """Before a page is written."""
    if page is not None and (text := description(page)):
        context["metatags"] += f'<meta name="description" content="{escape(text)}">\n'


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("html-page-context", add_description)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
