"""The functions of the system that native code calls by name, as ``memset``."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, Final

_OF_WINDOWS: Final = ("ucrtbase", "msvcrt", "kernel32", "ntdll")
"""Where Windows has them: there, no library stands for all that a process has loaded. All are part of the system."""


@cache
def function_of_system(name: str) -> int | None:
    """The address of a function; ``None`` where there is none of this name."""
    for library in _libraries():
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
    return None


@cache
def _libraries() -> list[Any]:
    if sys.platform != "win32":
        return [ctypes.CDLL(None)]
    return [ctypes.WinDLL(f"{name}.dll") for name in _OF_WINDOWS]
