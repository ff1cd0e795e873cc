"""The plugin seam: hooks, tables, and the registry that joins them.

The default registry is made when it is first asked for, from the plugins that are installed.
"""

from __future__ import annotations

from tract_core.plugins.descriptor import Failure, Format, PluginRecord, PluginState
from tract_core.plugins.hookspecs import API_VERSION, hookimpl
from tract_core.plugins.registry import ASKING, PluginWarning, Registry
from tract_core.plugins.tables import Row, Rows, Table, TableKey

__all__ = [
    "API_VERSION",
    "Failure",
    "Format",
    "PluginRecord",
    "PluginState",
    "PluginWarning",
    "Registry",
    "Row",
    "Rows",
    "Table",
    "TableKey",
    "default_registry",
    "hookimpl",
    "refresh",
]

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
