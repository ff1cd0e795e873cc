"""What this distribution brings, as data: the entry point leads here; nothing else is imported before it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.plugins import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin interface that this was written for."""
    return "1.0"


@hookimpl
def tract_rows() -> Mapping[str, Sequence[str]]:
    """Which module holds rows of which table."""
    return {
        "reference": ["tract_q4.q4"],
        "cost": ["tract_q4.q4"],
        "axes": ["tract_q4.q4"],
        "cases": ["tract_q4.cases"],
    }


@hookimpl
def tract_transforms() -> Mapping[str, str]:
    """Transforms by name."""
    return {"pack_q4": "tract_q4.pack_weights:PackQ4"}
