"""The application of HTTP with all that this distribution answers, for servers of ASGI."""

from __future__ import annotations

from pathlib import Path

from tract_serve.http.application import Application
from tract_serve.routes import ROUTES
from tract_serve.serving import Serving
from tract_serve.settings import Settings


def application(source: str | Path, settings: Settings | None = None) -> Application:
    """An ASGI application for a repository of models, or for one model, as for ``uvicorn`` or Ray Serve."""
    return Application(Serving(Path(source), settings or Settings()), ROUTES)
