"""Plugins of one line, for tests: what their hooks answer, without a distribution to install."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tract_core.plugins import Registry, Rows, hookimpl


def toy_plugin(**answers: Any) -> ModuleType:
    """A plugin: its hook ``tract_rows`` returns what is given as ``rows``, and so on."""
    plugin: Any = ModuleType("toy_plugin")
    for name, answer in {"api_version": "1.0", **answers}.items():
        setattr(plugin, f"tract_{name}", hookimpl(_returning(answer)))
    return plugin


def toy_registry(plugin: str, **answers: Any) -> Registry:
    """The registry of the core and of one such plugin, of that name."""
    return Registry({plugin: toy_plugin(**answers)}, discover=False)


def toy_rows(module: str, rows: Rows) -> list[str]:
    """Modules to list in a hook's answer: a new one of that name, whose ``ROWS`` are ``rows``."""
    made: Any = ModuleType(module)
    made.ROWS = rows
    sys.modules[module] = made
    return [module]


def _returning(answer: Any) -> Any:
    def hook() -> Any:
        return answer

    return hook
