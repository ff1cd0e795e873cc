"""What this distribution offers."""

from __future__ import annotations

from collections.abc import Mapping

from tract_core.plugins.hookspecs import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """Subcommands of ``tract``."""
    return {"view": "tract_view.cli.view:command"}
