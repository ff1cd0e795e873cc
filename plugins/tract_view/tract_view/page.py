"""The page: its files as they are served, or all in one file that needs no server.

A page runs its own scripts and nothing else: the model is data, which is read as JSON and shown as text. The policy of
the page forbids every other script, and every request but those to where it came from.
"""

from __future__ import annotations

import gzip
import secrets
from base64 import b64encode
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tract_view.document import Document

SCRIPTS: Final = ("model.js", "geometry.js", "drawing.js", "pane.js", "details.js", "search.js", "main.js")
"""In the order in which they are read."""

STYLE: Final = "view.css"

SERVED_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The policy of a page that is served, as the header ``Content-Security-Policy``."""


@cache
def source(name: str) -> str:
    """A file of the page."""
    return files("tract_view").joinpath("page", name).read_text(encoding="utf-8")


def served_html(document: Document) -> str:
    """The page that fetches the model from where it is served."""
    scripts = "\n".join(f'<script src="{name}" defer></script>' for name in SCRIPTS)
    head = f'<link rel="stylesheet" href="{STYLE}">\n{scripts}'
    return _filled(document.title, head, "")


def whole_html(document: Document) -> str:
    """The page with all in it, the model as compressed JSON in base64: no letter of it can end or begin a tag."""
    nonce = secrets.token_urlsafe(18)
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<style nonce="{nonce}">\n{source(STYLE)}</style>'
    )
    pieces = "\n".join(
        f'<script type="application/octet-stream" id="piece-{name}">{_packed(text)}</script>'
        for name, text in document.pieces.items()
    )
    scripts = "\n".join(f'<script nonce="{nonce}">\n{source(name)}</script>' for name in SCRIPTS)
    return _filled(document.title, head, f"{pieces}\n{scripts}")


def _packed(text: str) -> str:
    return b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode()


def _filled(title: str, head: str, end: str) -> str:
    page = source("view.html").replace("<!-- head -->", f"<title>{escape(title)}</title>\n{head}")
    return page.replace("<!-- end -->", end)
