"""The page on the loopback address: for whoever knows its token, by GET, and for nobody else.

Other users of the machine reach the port, and so do pages of other sites that run in the browser. The former do not
know the token, which is part of every path; the latter neither, and what they send under another name (``Host``) is
refused, so that a name of theirs that leads to this machine gives them nothing.
"""

from __future__ import annotations

import gzip
import secrets
from collections.abc import Mapping
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_view.page import SCRIPTS, SERVED_POLICY, STYLE, served_html, source

if TYPE_CHECKING:
    from tract_view.document import Document

ADDRESS: Final = "127.0.0.1"

SECONDS: Final = 10.0
"""How long a connection may stay silent."""

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": SERVED_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@frozen
class Answer:
    """A file that is served. ``kind``: what it is, as HTTP says it; ``content``: its bytes, compressed by gzip."""

    kind: str
    content: bytes

    @staticmethod
    def of(kind: str, text: str) -> Answer:
        """A text of a kind, as ``text/html``."""
        return Answer(f"{kind}; charset=utf-8", gzip.compress(text.encode(), compresslevel=5, mtime=0))


def answers_of(document: Document) -> dict[str, Answer]:
    """All that there is to ask for, by the name behind the token."""
    return {
        "": Answer.of("text/html", served_html(document)),
        STYLE: Answer.of("text/css", source(STYLE)),
        **{name: Answer.of("text/javascript", source(name)) for name in SCRIPTS},
        **{f"{name}.json": Answer.of("application/json", text) for name, text in document.pieces.items()},
    }


class PageServer(ThreadingHTTPServer):
    """Serves a document until it is closed. ``port``: 0 for any that is free. Raises InputError for one that is not."""

    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, document: Document, port: int = 0) -> None:
        self.answers: Mapping[str, Answer] = answers_of(document)
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            hint = "leave out --port for any that is free"
            raise InputError(f"the port cannot be had: {error.strerror}", where=f"--port {port}", hint=hint) from None
        self.hosts = {f"{name}:{self.server_port}" for name in (ADDRESS, "localhost")}

    @property
    def url(self) -> str:
        """Where the page is. Whoever knows it can read the model as long as this runs."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing is said of clients that go away."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "tract-view"
    sys_version = ""
    timeout = SECONDS
    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]: it is no other
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain; charset=utf-8"

    def do_GET(self) -> None:
        """What there is at a path, or 404; 403 for another name than that of this machine."""
        if self.headers.get("Host") not in self.server.hosts:
            self.send_error(403, "Forbidden")
            return
        answer = self._found()
        if answer is None:
            self.send_error(404, "Not Found")
            return
        self.send_response(200)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def _found(self) -> Answer | None:
        token, slash, name = self.path[1:].partition("/")
        right = compare_digest(token.encode("utf-8", "surrogateescape"), self.server.token.encode())
        return self.server.answers.get(name) if right and slash else None

    def end_headers(self) -> None:
        """The headers that every answer has."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is that of the base)
        """Nothing is logged: paths hold the token."""
