"""Object files that call and are called as Windows has it, linked by our linker, and called in this process.

Functions that LLVM makes stand between: they are called as this system has it, and call as Windows has it, and the
other way round for what objects want of the C library.
"""

from __future__ import annotations

from ctypes import CFUNCTYPE, c_int32, c_void_p
from functools import cache, partial
from typing import Any

import pytest
from linked_objects import LinkedObject
from tract_cpu.ahead.object_file import compile_model
from tract_cpu.ahead.targets import ObjectTarget
from tract_llvm.isa import Isa, chosen
from tract_llvm.objects import linker
from tract_llvm.objects.target import llvm, machine

from tract_core.model.typed import TypedModel

TRIPLE = "x86_64-pc-windows-msvc-elf"

_OF_LIBRARY = """
declare ptr @memset(ptr, i32, i64)
declare ptr @memcpy(ptr, ptr, i64)
define win64cc ptr @memset_there(ptr %to, i32 %byte, i64 %size) {
  %found = call ptr @memset(ptr %to, i32 %byte, i64 %size)
  ret ptr %found
}
define win64cc ptr @memcpy_there(ptr %to, ptr %from, i64 %size) {
  %found = call ptr @memcpy(ptr %to, ptr %from, i64 %size)
  ret ptr %found
}
"""


def windows_object(model: TypedModel, isa: Isa | None = None) -> LinkedObject:
    """A model whose sizes are known, compiled for Windows and linked here. Wants nothing but of the C library."""
    found = compile_model(model, ObjectTarget("windows", isa or chosen(""), TRIPLE), "model")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(linker, "function_of_system", lambda name: _of_library(f"{name}_there"))
        start, run = linker.linked([(f"model_{name}", bytes(found.code)) for name in ("start", "run")])
    made = LinkedObject(found, partial(_call(1), start.address), partial(_call(1 + len(found.arrays)), run.address))
    made.held = start, run
    return made


def _of_library(name: str) -> int:
    """What an object calls, of those that it may call at all."""
    found: int = _linked(_OF_LIBRARY, ("memset_there", "memcpy_there"))[name]
    return found


@cache
def _call(pointers: int) -> Any:
    """``call(address, pointer, ...)`` of a function with so many arguments, all of them addresses."""
    given = ", ".join(f"ptr %a{number}" for number in range(pointers))
    text = f"define i32 @call(ptr %f, {given}) {{\n  %r = call win64cc i32 %f({given})\n  ret i32 %r\n}}"
    return CFUNCTYPE(c_int32, *[c_void_p] * (1 + pointers))(_linked(text, ("call",))["call"])


@cache
def _linked(text: str, names: tuple[str, ...]) -> Any:
    """Functions of this system, by name."""
    isa = chosen("")
    module = llvm.parse_assembly(text)
    module.triple = machine(isa).triple
    by = llvm.create_lljit_compiler(machine(isa))
    library = llvm.JITLibraryBuilder().add_ir(module).add_current_process()
    for name in names:
        library.export_symbol(name)
    _HELD.append(by)
    return library.link(by, "between")


_HELD: list[Any] = []
