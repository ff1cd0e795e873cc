"""The registry of the installed plugins."""

from __future__ import annotations

from tract_core.plugins.refreshed import note_refresh
from tract_core.plugins.registry import ASKING, Registry

_default: list[Registry] = []


def default_registry() -> Registry:
    """The registry of the installed plugins, the same for all threads until `refresh`."""
    with ASKING:
        if not _default:
            _default.append(Registry())
        return _default[0]


def refresh() -> None:
    """Look for installed plugins again at the next question, as after an installation from a notebook."""
    with ASKING:
        _default.clear()
        note_refresh()
