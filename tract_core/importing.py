"""Modules are imported without Python looking for garbage meanwhile: what they are made of stays.

That was a third of the time in which a small model is loaded.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tract_core.garbage import uncollected


def imported(name: str) -> ModuleType:
    """A module, by its full name."""
    with uncollected():
        return import_module(name)
