"""The plugin seam: hooks, tables, and the registry that joins them.

The default registry is made when it is first asked for, from the plugins that are installed.
"""

from __future__ import annotations

from functools import cache

from tract_core.plugins.descriptor import Frontend, PluginRecord, PluginState
from tract_core.plugins.hookspecs import API_VERSION, hookimpl
from tract_core.plugins.registry import PluginWarning, Registry
from tract_core.plugins.tables import Row, Rows, Table, TableKey

__all__ = [
    "API_VERSION",
    "Frontend",
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


@cache
def default_registry() -> Registry:
    """The registry of the installed plugins. `refresh` forgets it, for when plugins were added while running."""
    return Registry()


def refresh() -> None:
    """Look for installed plugins again at the next question."""
    default_registry.cache_clear()
