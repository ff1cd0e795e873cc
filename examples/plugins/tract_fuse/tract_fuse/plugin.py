"""What this distribution brings, as data: the entry point leads here; nothing else is imported before it is used."""

from __future__ import annotations

from collections.abc import Mapping

from tract_core.plugins.hookspecs import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin interface that this was written for."""
    return "1.0"


@hookimpl
def tract_runtimes() -> Mapping[str, str]:
    """Runtimes by name."""
    return {"fuse": "tract_fuse.runtime:FuseRuntime"}
