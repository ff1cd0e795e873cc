"""Work that makes many objects which stay, done without Python looking for garbage meanwhile.

Every thousand objects or so CPython goes through those that are young, and at times through all, for cycles that nobody
refers to. Where what is made stays, that finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """Where it is switched off already, as by somebody around, it stays so."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
