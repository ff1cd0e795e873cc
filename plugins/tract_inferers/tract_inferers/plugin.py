"""What this distribution offers."""

from __future__ import annotations

from tract_core.plugins.hookspecs import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"
