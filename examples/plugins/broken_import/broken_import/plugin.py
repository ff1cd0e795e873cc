"""Needs a library that is not there."""

import library_that_is_not_there  # noqa: F401

from tract_core.plugins.hookspecs import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin interface that this was written for."""
    return "1.0"

