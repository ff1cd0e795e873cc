"""The runtime as Python on Windows or macOS has it, in a process of Linux: `main` runs models with it.

Modules of ours see the other system (`another_system`); what they ask of it is done with what Linux has for it. On
Windows, whatever native code calls is called as Windows has it, and so is whatever Python calls of it: functions that
LLVM makes stand between. So all of it runs, the linker, the executor and the threads that help, in code for Windows.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[3] / "tests"))

import another_system
import numpy as np
from llvmlite import binding as llvm

_MOST: Final = 12
"""How many integers and addresses a function takes at most."""


def between(address: int, count: int, *, to_windows: bool) -> int:
    """A function of one convention that calls one of the other, at an address, with so many arguments."""
    given = ", ".join(f"i64 %a{number}" for number in range(count))
    own, called = ("", "win64cc") if to_windows else ("win64cc", "")
    return _linked(
        f"define {own} i64 @between({given}) {{\n"
        f"  %r = call {called} i64 inttoptr (i64 {address} to ptr)({given})\n  ret i64 %r\n}}"
    )


@cache
def _linked(text: str) -> int:
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    name = f"between{len(_HELD)}"
    tracker = llvm.JITLibraryBuilder().add_ir(module).export_symbol("between").link(_linker(), name)
    _HELD.append(tracker)
    return tracker["between"]


@cache
def _linker() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler(
        llvm.Target.from_default_triple().create_target_machine(jit=True), use_jit_link=True
    )


_HELD: Final[list[Any]] = []


def function_type(gives: Any, *takes: Any) -> Any:
    """As `ctypes.CFUNCTYPE`, for functions of Windows."""
    kind: Any = ctypes.CFUNCTYPE(gives, *takes)
    return lambda address: kind(between(address, len(takes), to_windows=True))


@cache
def touching_pages() -> Any:
    """``__chkstk``, which touches the pages of a large stack one by one: on Linux, all of them are there."""
    return ctypes.CFUNCTYPE(None)(_linked("define void @between() { ret void }"))  # which changes no register


class OfWindows(ctypes.c_void_p):
    """A function of Windows: its address, and what Python calls."""

    def __init__(self, genuine: Any, count: int) -> None:
        self.genuine = genuine
        super().__init__(between(ctypes.cast(genuine, ctypes.c_void_p).value or 0, count, to_windows=False))

    def __call__(self, *arguments: Any) -> Any:
        return self.genuine(*arguments)


HERE: Final = ctypes.CDLL(None)
CALLS: Final[list[str]] = []
"""What was asked of the system, of what is written here."""


def _call(gives: Any, *takes: Any) -> Callable[[Any], Any]:
    def made(function: Any) -> Any:
        def noted(*arguments: int) -> int:
            CALLS.append(function.__name__)
            return function(*arguments)

        return ctypes.CFUNCTYPE(gives, *takes)(noted)

    return made


_WORD: Final = ctypes.c_int64
_SIZES: Final[dict[int, int]] = {}


@_call(_WORD, _WORD, _WORD, _WORD, _WORD)
def VirtualAlloc(place: int, size: int, kind: int, rights: int) -> int:  # noqa: N802 (as it is called there)
    assert (place or 0, kind, rights) == (0, 0x3000, 0x04)
    HERE.mmap.restype, HERE.mmap.argtypes = ctypes.c_int64, [_WORD] * 6
    address: int = HERE.mmap(0, size, 1 | 2, 0x22, -1, 0)
    _SIZES[address] = size
    return address


@_call(ctypes.c_int, _WORD, _WORD, _WORD, _WORD)
def VirtualProtect(address: int, size: int, rights: int, before: int) -> int:  # noqa: N802 (the same)
    assert (_SIZES[address], rights) == (size, 0x20)
    assert before
    return HERE.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), 1 | 4) == 0


@_call(ctypes.c_int, _WORD, _WORD, _WORD)
def FlushInstructionCache(process: int, address: int, size: int) -> int:  # noqa: N802 (the same)
    return process == -1 and _SIZES[address] == size


@_call(ctypes.c_int, _WORD, _WORD, _WORD)
def VirtualFree(address: int, size: int, how: int) -> int:  # noqa: N802 (the same)
    assert (size, how) == (0, 0x8000)
    return HERE.munmap(ctypes.c_void_p(address), ctypes.c_size_t(_SIZES.pop(address))) == 0


@_call(None, ctypes.c_int)
def pthread_jit_write_protect_np(is_protected: int) -> None:
    assert CALLS.count("pthread_jit_write_protect_np") % 2 != is_protected, "first for code to be written, then no more"


@_call(None, _WORD, _WORD)
def sys_icache_invalidate(address: int, size: int) -> None:
    assert address
    assert size


class LibraryOfMacos(ctypes.CDLL):
    """Everything that a process of macOS has."""

    def __getattr__(self, name: str) -> Any:
        found = _OF_MACOS.get(name)
        return found if found is not None else super().__getattr__(name)


_OF_MACOS: Final[dict[str, Any]] = {
    "pthread_jit_write_protect_np": pthread_jit_write_protect_np,
    "sys_icache_invalidate": sys_icache_invalidate,
    "sysctlbyname": ctypes.CFUNCTYPE(ctypes.c_int, *[_WORD] * 5)(lambda *_: -1),  # it does not say
}


class Library:
    """A library of Windows, of those that all programs have."""

    def __init__(self, name: str) -> None:
        self.name = name.removesuffix(".dll")

    def __getattr__(self, name: str) -> Any:
        if (self.name, name) == ("ntdll", "__chkstk"):
            return touching_pages()
        found = _FUNCTIONS.get((self.name, name)) if self.name != "kernel32" else _OF_KERNEL.get(name)
        if found is None:
            raise AttributeError(name)
        return found if callable(found) else OfWindows(*found)


_OF_KERNEL: Final[dict[str, Any]] = {
    "VirtualAlloc": (VirtualAlloc, 4),
    "VirtualProtect": (VirtualProtect, 4),
    "FlushInstructionCache": (FlushInstructionCache, 3),
    "VirtualFree": (VirtualFree, 3),
    "GetCurrentProcessorNumber": (HERE.sched_getcpu, 0),
    "SwitchToThread": (HERE.sched_yield, 0),
    "GlobalMemoryStatusEx": lambda *_: 0,  # it does not say
    "GetLogicalProcessorInformation": lambda *_: 0,  # nor that
}
_FUNCTIONS: Final[dict[tuple[str, str], Any]] = {
    ("msvcrt", "memset"): (HERE.memset, 3),
    ("msvcrt", "memcpy"): (HERE.memcpy, 3),
}


def call_as_windows() -> None:
    """Have Python call and be called by native code as Windows has it."""
    sys.modules["ctypes"].__dict__.update(CFUNCTYPE=function_type, WinDLL=Library)
    from tract_cpu.native import objects, repeat

    made, known = objects.definition, objects.addresses()
    functions = len(objects.NAMES) - len(objects._OBJECTS)
    there = [between(int(one), _MOST, to_windows=False) for one in known[:functions]]
    known[:functions] = there
    repeat.definition = lambda name, address: made(name, between(address, 3, to_windows=True))


def main(system: str, folder: Path) -> None:
    """Run each ``NAME.onnx`` there on what is in ``NAME.npz``, three times, with one thread and with two.

    What it gives is then in ``NAME.found.npz``. Prints what the system was asked for.
    """
    another_system.import_what_is_used_of_others(another_system.OURS)
    another_system.pretend(system)
    if system == "win32":
        call_as_windows()
    else:
        sys.modules["ctypes"].__dict__.update(CDLL=LibraryOfMacos)
    from tract_cpu.runtime import CpuRuntime
    from tract_llvm.objects import compilers

    import tract_core as tract

    compilers.cores_here = lambda: 1  # other processes would be on this system
    for path in sorted(folder.glob("*.onnx")):
        given = list(np.load(path.with_suffix(".npz")).values())
        found: dict[str, np.ndarray] = {}
        for threads in (1, 2):
            runnable = CpuRuntime(threads=threads).prepare(tract.load(path).typed)
            state = runnable.spawn()
            for turn in range(3):
                for number, one in enumerate(state.run(given)):
                    found[f"{threads} {turn} {number}"] = np.array(one)
        np.savez(path.with_suffix(".found.npz"), **found)
    sys.stdout.write(" ".join(sorted(set(CALLS))))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
