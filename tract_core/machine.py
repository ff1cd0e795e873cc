"""What the system tells of the machine that this runs on, where each system has ways of its own.

Linux has files and calls of POSIX, macOS `sysctl`, Windows functions of its ``kernel32``. What a system does not tell
is ``None``, or the documented default: whoever asks has something else to go by.
"""

from __future__ import annotations

import os
import sys


def architecture() -> str:
    """The type of its processors, as Linux and LLVM call it: ``x86_64``, ``aarch64``."""
    import platform

    found = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(found, found)


def processors_here() -> frozenset[int]:
    """The numbers of the processors that this process may run on.

    All of the machine where the system binds no process to some of them, as macOS, and on Windows, where processes
    that are bound are rare.
    """
    if sys.platform == "linux":
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def built_in_memory() -> int | None:
    """Bytes of memory that the machine has."""
    if sys.platform == "win32":
        return _memory_of_windows()
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):  # it has no such names
        return None


def sysctl(name: str) -> int | None:
    """What macOS says under a name, such as ``hw.physicalcpu``, where that is an integer of 4 or 8 bytes.

    Source: ``sysctlbyname(3)``.
    """
    if sys.platform != "darwin":
        return None
    import ctypes

    found, size = ctypes.c_int64(), ctypes.c_size_t(8)
    ask = ctypes.CDLL(None).sysctlbyname
    ask.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 3, ctypes.c_size_t]
    refused = ask(name.encode(), ctypes.byref(found), ctypes.byref(size), None, 0)
    return None if refused else found.value  # the lowest byte is the first, and the rest was zero


def _memory_of_windows() -> int | None:
    """Source: ``GlobalMemoryStatusEx``, whose structure begins with its size, and has the memory at byte 8."""
    if sys.platform != "win32":
        return None
    import ctypes

    status = (ctypes.c_uint64 * 8)(64)
    return status[1] if ctypes.WinDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status)) else None
