"""A module of rows that clashes with the core, and one that does not."""

from tract_core.plugins.hookspecs import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin interface that this was written for."""
    return "1.0"


@hookimpl
def tract_rows():
    """One good module, one with a bad row."""
    return {"reference": ["broken_rows.clash", "broken_rows.fine"], "cost": ["broken_rows.fine"]}
