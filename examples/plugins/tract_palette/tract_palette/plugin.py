"""What this distribution brings, as data: the entry point leads here; nothing else is imported before it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.plugins import hookimpl
from tract_core.plugins.descriptor import Option, Stage


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin interface that this was written for."""
    return "1.0"


@hookimpl
def tract_transforms() -> Mapping[str, str]:
    """Transforms by name."""
    return {"palette": "tract_palette.palette:Palette"}


@hookimpl
def tract_stages() -> Sequence[Stage]:
    """Where the command applies it, and the flag that says so."""
    flag = Option("Let weights take one of 2^BITS values each.", int, "BITS")
    return [Stage("palette", after="set-declutter", transform="palette", option=flag, parameter="bits")]
