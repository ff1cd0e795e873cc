"""What this distribution brings: the runtime ``cuda``, the tables that say what it compiles, and its rows of them."""

from __future__ import annotations

from tract_core.plugins.hookspecs import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"
