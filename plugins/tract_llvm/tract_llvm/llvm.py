"""llvmlite, which does not say what types its functions take and give: the one place that imports it."""

from __future__ import annotations

import os
import sys
from _thread import RLock  # `threading`, which has more, is imported where threads are started
from functools import cache
from typing import Any, Final


class _Written:
    """A part of llvmlite that is imported when somebody asks for a name in it: nobody does for code that is kept."""

    def __getattr__(self, name: str) -> Any:
        from llvmlite import ir as found  # pyright: ignore[reportMissingTypeStubs] # it has none

        self.__dict__.update(vars(found))
        return getattr(found, name)


ir: Any = _Written()
"""What modules are written with: Python and no more."""

LOCK: Final = RLock()
"""Held by the one thread that has LLVM compile: as llvmlite has it, it is not for several at once."""


def let_forks_wait() -> None:
    """Have a fork wait while one thread compiles: the child has no such thread, and LLVM would wait for it.

    Of several locks that a fork takes, the one that it was told of last comes first. Whoever compiles holds `LOCK`, and
    wants others meanwhile: so it is told again after each module that brings one.
    """
    if sys.platform != "win32":  # which does not fork
        os.register_at_fork(before=LOCK.acquire, after_in_child=LOCK.release, after_in_parent=LOCK.release)


AS_WRITTEN: Final = "addresses as written"
"""The name of a module for which LLVM shall not look for cheaper ways to the addresses in its loops."""


@cache
def binding() -> Any:
    """LLVM itself, which is loaded when somebody asks: it takes as long, and as much memory, as a small model."""
    from llvmlite import binding as found  # pyright: ignore[reportMissingTypeStubs] # it has none

    return found
