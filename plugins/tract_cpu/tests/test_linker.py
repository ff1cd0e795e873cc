"""Object files that become functions without LLVM: the same functions, or none at all."""

from __future__ import annotations

import os
import subprocess
import sys
from ctypes import CFUNCTYPE, c_int64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tract_cpu.native.objects import address_of
from tract_llvm.isa import ISAS, Isa, of_this_machine
from tract_llvm.language.function import Function
from tract_llvm.language.types import F64, INDEX, POINTER
from tract_llvm.objects import linker, target
from tract_llvm.objects.library import module_text
from tract_llvm.objects.linker import linked
from tract_llvm.objects.relocations import MACHINES, CannotLink

from tract_core.frozen import replaced

HERE = of_this_machine()[-1] if of_this_machine() else None
ELSEWHERE = next(one for one in ISAS if HERE is None or one.architecture != HERE.architecture)

needs_elf = pytest.mark.skipif(
    sys.platform != "linux" or HERE is None or HERE.architecture not in MACHINES,
    reason="only files of this kind are linked",
)

TABLE = [0.5, -3.0, 1e30, 7.0, 2.5, -0.25, 6.0]


def write(module: Any, name: str, isa: Isa) -> None:
    """``name(out, count)``: numbers that lie beside the code, one that LLVM puts there, and a call of the C library."""
    f = Function(module, name, isa, [POINTER, INDEX])
    out, table = f.buffer(0, F64), f.table(TABLE, F64)
    with f.loop("i", f.argument(1)) as i:
        out[i] = table[i % len(TABLE)] * f.constant(1.2345678901234567, F64)
    f.call_library("sched_yield")
    f.finish()


def code(name: str, isa: Isa) -> bytes:
    return target.object_code(module_text(lambda module: write(module, name, isa)), isa)


def results(address: int) -> np.ndarray:
    out = np.zeros(3 * len(TABLE))
    CFUNCTYPE(None, c_void_p, c_int64)(address)(address_of(out), len(out))
    return out


@needs_elf
@pytest.mark.parametrize("isa", of_this_machine(), ids=lambda isa: isa.name)
def test_a_function_finds_its_constants_and_the_c_library(isa: Isa) -> None:
    names = ["one", "two", "three"]
    found = linked([(name, code(name, isa)) for name in names])
    by_llvm = target.linked("two", code("two", isa), isa)
    expected = np.tile(TABLE, 3) * 1.2345678901234567
    for one in found:
        np.testing.assert_array_equal(results(one.address), expected)
        assert 0 < one.size <= 4096
    np.testing.assert_array_equal(results(by_llvm.address), expected)


@needs_elf
def test_what_can_be_executed_cannot_be_written() -> None:
    assert HERE is not None
    (one,) = linked([("one", code("one", HERE))])
    maps = Path("/proc/self/maps").read_text().splitlines()
    for line in maps:
        begin, end = (int(part, 16) for part in line.split()[0].split("-"))
        if begin <= one.address < end:
            assert line.split()[1] == "r-xp"
            return
    pytest.fail("it lies nowhere")


@needs_elf
def test_what_is_not_understood_is_left_to_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    assert HERE is not None
    whole = code("one", HERE)
    with pytest.raises(CannotLink, match="no object file for this processor"):
        linked([("one", code("one", ELSEWHERE))])
    with pytest.raises(CannotLink, match="it has no function 'another'"):
        linked([("another", whole)])
    for size in range(0, len(whole), 97):
        with pytest.raises(CannotLink):
            linked([("one", whole[:size])])
    machine = MACHINES[HERE.architecture]
    fits = {kind: fit for kind, fit in machine.fits.items() if kind not in machine.calls}
    monkeypatch.setattr(linker, "MACHINES", {HERE.architecture: replaced(machine, fits=fits)})
    with pytest.raises(CannotLink, match="relocation of kind (" + "|".join(map(str, machine.calls)) + ")"):
        linked([("one", whole)])
    monkeypatch.setattr(linker, "MACHINES", {})
    with pytest.raises(CannotLink, match="the processor is of type"):
        linked([("one", whole)])


@needs_elf
def test_a_function_that_no_library_has_is_an_error_before_anything_runs() -> None:
    assert HERE is not None

    def emit(module: Any) -> None:
        f = Function(module, "one", HERE, [POINTER])
        f.call_library("there_is_no_such_function")
        f.finish()

    with pytest.raises(CannotLink, match="no function 'there_is_no_such_function'"):
        linked([("one", target.object_code(module_text(emit), HERE))])


WARM = """
import sys
import numpy as np
import tract_core as tract
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Exp
from tract_llvm.objects import compilers
from tract_cpu.runtime import CpuRuntime

compilers.cores_here = lambda: 1  # so that it is this process that compiles
model = TypedModel()
x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
model.set_outputs(model.wire_node("y", Exp(), [x]))
(y,) = CpuRuntime().prepare(model).spawn().run([np.ones(5, "f4")])
assert abs(y[4] - np.e) < 1e-6, y
print("llvmlite.binding" in sys.modules)
"""


@needs_elf
def test_what_is_compiled_already_runs_without_llvm(tmp_path: Path) -> None:
    changed = {**os.environ, "TRACT_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    told = [subprocess.check_output([sys.executable, "-c", WARM], env=changed, text=True).strip() for _ in range(2)]
    assert told == ["True", "False"]
