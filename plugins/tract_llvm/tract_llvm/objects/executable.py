"""Memory that is executed, and that nobody can write to by then. Each system has a way of its own.

Linux: memory is written, then its rights are changed. Windows: the same, by other names. macOS: memory that is there
for code (`MAP_JIT`), which each thread may either write or execute; whoever writes says so, for itself alone. Where
processors do not see what was written, as those of ARM, they are told.

Source: ``mprotect(2)``; ``VirtualAlloc``, ``VirtualProtect``, ``VirtualFree`` and ``FlushInstructionCache`` of Windows;
"Porting just-in-time compilers to Apple silicon", with ``pthread_jit_write_protect_np(3)`` and
``sys_icache_invalidate(3)``.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from typing import Any, Final

from tract_core.frozen import frozen
from tract_llvm.objects.c_library import function_of_system


@frozen
class Executable:
    """``address``: where code begins. ``memory``: what it lies in, as long as somebody holds it."""

    address: int
    memory: Any


_READ, _WRITE, _EXECUTE = 1, 2, 4
"""Rights to memory, of POSIX."""

_FOR_CODE: Final = 0x0800
"""`MAP_JIT` of macOS."""

_COMMITTED: Final = 0x1000 | 0x2000
"""`MEM_COMMIT | MEM_RESERVE`."""

_RELEASED: Final = 0x8000
"""`MEM_RELEASE`."""

_WRITTEN, _EXECUTED = 0x04, 0x20
"""`PAGE_READWRITE`, `PAGE_EXECUTE_READ`."""


def executable(code: bytes | bytearray, *, sees_writes: bool) -> Executable:
    """Code, at the beginning of a page. ``sees_writes``: whether processors see what was written without being told.

    Raises OSError where the system does not allow that.
    """
    if sys.platform == "win32":
        return _of_windows(bytes(code))
    return _of_macos(bytes(code)) if sys.platform == "darwin" else _of_linux(bytes(code), sees_writes=sees_writes)


def _of_linux(code: bytes, *, sees_writes: bool) -> Executable:
    assert sys.platform != "win32", "which has no such functions"
    memory = mmap.mmap(-1, len(code), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = code
    begin = _address(memory)
    if not sees_writes:
        _tell_of_writes(begin, begin + len(code))
    _check(not _call("mprotect", begin, len(code), _READ | _EXECUTE))
    return Executable(begin, memory)


def _of_macos(code: bytes) -> Executable:
    assert sys.platform != "win32", "which has no such functions"
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FOR_CODE
    memory = mmap.mmap(-1, len(code), flags=flags, prot=_READ | _WRITE | _EXECUTE)
    begin = _address(memory)
    _call("pthread_jit_write_protect_np", 0)
    try:
        ctypes.memmove(begin, code, len(code))
    finally:
        _call("pthread_jit_write_protect_np", 1)
    _call("sys_icache_invalidate", begin, len(code))
    return Executable(begin, memory)


class _Memory:
    """A piece of memory of Windows, which gets it back when nobody holds this any more."""

    def __init__(self, size: int) -> None:
        self.begin = _call("VirtualAlloc", 0, size, _COMMITTED, _WRITTEN, gives=ctypes.c_ssize_t)
        _check(self.begin)
        end = weakref.finalize(self, _call, "VirtualFree", self.begin, 0, _RELEASED)
        end.atexit = False  # as threads may still run what is in it


def _of_windows(code: bytes) -> Executable:
    memory, before = _Memory(len(code)), ctypes.c_uint32()
    ctypes.memmove(memory.begin, code, len(code))
    _check(_call("VirtualProtect", memory.begin, len(code), _EXECUTED, ctypes.addressof(before)))
    _check(_call("FlushInstructionCache", -1, memory.begin, len(code)))  # -1 stands for this process
    return Executable(memory.begin, memory)


def _tell_of_writes(begin: int, end: int) -> None:
    """Have the processor read code anew between two addresses. GCC's library has this for every processor."""
    try:
        clear = ctypes.CDLL("libgcc_s.so.1")["__clear_cache"]
    except AttributeError as missing:
        raise OSError(f"nothing tells the processor what was written: {missing}") from missing
    clear.restype = None
    clear(ctypes.c_void_p(begin), ctypes.c_void_p(end))


def _call(name: str, *arguments: int, gives: Any = ctypes.c_int) -> int:
    """What a function of the system gives that takes integers and addresses. Raises OSError where there is none."""
    address = function_of_system(name)
    if address is None:
        raise OSError(f"there is no function {name}")
    kinds: list[Any] = [ctypes.c_ssize_t] * len(arguments)
    return ctypes.CFUNCTYPE(gives, *kinds)(address)(*arguments)


def _check(done: object) -> None:
    if not done:
        raise OSError("the system refuses to execute what was written to memory")


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
