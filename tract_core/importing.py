"""Modules are imported without Python looking for garbage meanwhile.

Every thousand objects or so CPython goes through those that are young, and at times through all, for cycles that nobody
refers to. What modules are made of stays, so that finds nothing: it was a third of the time in which a small model is
loaded.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType


def imported(name: str) -> ModuleType:
    """A module, by its full name."""
    with _uncollected():
        return import_module(name)


@contextmanager
def _uncollected() -> Generator[None]:
    """Where it is switched off already, as by an import around this one, it stays so."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
