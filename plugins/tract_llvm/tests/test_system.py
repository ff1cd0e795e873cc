"""Code is written for the system that it runs on: how it is called there, and keys that tell systems apart."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from tract_llvm.isa import ISAS, Isa
from tract_llvm.language.function import Function
from tract_llvm.language.types import F32, INDEX, POINTER
from tract_llvm.objects import executable, target
from tract_llvm.objects.library import module_text
from tract_llvm.objects.origins import key_of
from tract_llvm.objects.system import convention

ELF, MACHINES = b"\x7fELF", {"x86_64": 62, "aarch64": 183}

FIRST = {
    ("linux", "x86_64"): "%rdi",
    ("darwin", "x86_64"): "%rdi",
    ("win32", "x86_64"): "%rcx",
    ("linux", "aarch64"): "x0",
    ("darwin", "aarch64"): "x0",
    ("win32", "aarch64"): "x0",
    ("freebsd14", "x86_64"): "%rdi",
}
"""The register of the first argument. Source: the ABI of each system."""


def write(module: Any, isa: Isa) -> None:
    """``one(out, value)`` writes a number, through more registers than one may change."""
    f = Function(module, "one", isa, [POINTER, INDEX])
    f.buffer(0, F32)[0] = f.convert(f.argument(1), F32)
    f.finish()


@pytest.mark.parametrize(("system", "architecture"), FIRST)
def test_functions_are_called_as_the_system_has_it(system: str, architecture: str) -> None:
    isa = next(one for one in ISAS if one.architecture == architecture)
    text, found = module_text(lambda module: write(module, isa)), convention(architecture, system)
    machine = target.machine_for(isa, found.triple)
    module = target.optimised_for(text, machine)
    code = bytes(machine.emit_object(module))
    assert code.startswith(ELF)
    assert int.from_bytes(code[18:20], "little") == MACHINES[architecture]
    stored = re.search(r"movss\s+%xmm\d+, \((%\w+)\)|str\s+s\d+, \[(x\d+)\]", machine.emit_assembly(module))
    assert stored is not None
    assert FIRST[system, architecture] in stored.groups()


def test_keys_tell_systems_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set[str]()
    for system in ("linux", "win32", "darwin"):
        monkeypatch.setattr(sys, "platform", system)
        found.add(key_of("text", "target", "sources").digest)
    assert len(found) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="the function is Linux's")
def test_where_memory_may_not_be_executed_that_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executable, "function_of_system", lambda _: None)
    with pytest.raises(OSError, match="there is no function mprotect"):
        executable.executable(b"\xc3", sees_writes=True)
