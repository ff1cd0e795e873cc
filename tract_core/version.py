"""The version of the installed distribution."""

from __future__ import annotations

from functools import cache


@cache
def version() -> str:
    """The version of ``tract-core``, as ``"0.1.0"``."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("tract-core")
    except PackageNotFoundError:
        return "0+unknown"
