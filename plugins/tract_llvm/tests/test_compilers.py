"""Who compiles: processes that are started for it, or this one where they cannot, with the same code either way."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tract_llvm.isa import Isa, chosen
from tract_llvm.language.function import Function
from tract_llvm.language.types import F32, INDEX, POINTER
from tract_llvm.objects import compilers, target
from tract_llvm.objects.compilers import FEW_MORE, compiler, is_busy_for_good, is_python, object_code
from tract_llvm.objects.library import Code, Library, module_text
from tract_llvm.objects.origins import key_of

from tract_core.cache.cache import Cache
from tract_core.errors import LimitExceeded
from tract_core.limits import LoadLimits, spending

MANY = FEW_MORE + 3

needs_scripts = pytest.mark.skipif(sys.platform == "win32", reason="programs are scripts here")


def write(module: Any, number: int, isa: Isa, *, keeps: bool = False) -> None:
    """``add(out, x, count)``: adds numbers that are ``number`` apart, and some of their neighbours."""
    f = Function(module, f"add_{number}", isa, [POINTER, POINTER, INDEX])
    if keeps:
        f.keep_addresses()
    out, x, count = f.buffer(0, F32), f.buffer(1, F32), f.argument(2)
    with f.loop("i", count) as i:
        out[i] = x[i * number] + x[i * number * 3 + 7] + x[i * count + number]
    f.finish()


def texts() -> list[str]:
    return [module_text(lambda module, one=one: write(module, one, chosen(""))) for one in range(MANY)]


def compiled(given: Sequence[str]) -> list[bytes]:
    with compiler(len(given), chosen("")) as compiles:
        made: list[Future[bytes]] = [compiles.start(one) for one in given]
        return [one.result() for one in made]


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "cores_here", lambda: 2)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that this process compiles."""
    seen: list[str] = []

    def counted(text: str, isa: Isa) -> bytes:
        seen.append(text)
        return object_code(text, isa)

    monkeypatch.setattr(compilers, "object_code", counted)
    return seen


def no_process_is_left() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG) is None
    except ChildProcessError:
        return True


@pytest.mark.usefixtures("two_cores")
def test_many_kernels_are_compiled_by_other_processes_to_the_same_code(here: list[str]) -> None:
    assert compiled(texts()) == [target.object_code(one, chosen("")) for one in texts()]
    assert here == []
    assert no_process_is_left()


def test_few_kernels_are_compiled_here(here: list[str]) -> None:
    assert compiled(texts()[:FEW_MORE]) == [target.object_code(one, chosen("")) for one in texts()[:FEW_MORE]]
    assert here == texts()[:FEW_MORE]


def test_where_there_is_one_core_all_are_compiled_here(here: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "cores_here", lambda: 1)
    compiled(texts())
    assert here == texts()


OTHERS = {
    "ends": "exit 0",
    "says something else": "echo hello",
    "begins like ours and ends": "printf tract",
    "finds errors everywhere": "printf tract; exec head -c 4096 /dev/zero",
    "never answers": "exec sleep 60",
    "starts another one that never answers": "sleep 60; exit 0",
}


@needs_scripts
@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("does", OTHERS.values(), ids=OTHERS.keys())
def test_what_other_programs_do_not_do_is_done_here(
    does: str, here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(stat.S_IRWXU)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(compilers, "PATIENCE", 0.3)
    assert compiled(texts()) == [target.object_code(one, chosen("")) for one in texts()]
    assert sorted(here) == sorted(texts())
    assert no_process_is_left()


@pytest.mark.parametrize("program", ["", "/nowhere/python"])
def test_where_no_process_can_be_started_all_are_compiled_here(
    program: str, here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    compiled(texts())
    assert here == texts()


def test_no_program_is_started_that_has_python_as_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(map(is_python, ("/usr/bin/python3.11", "C:/Python/PYTHONW.EXE", "/opt/pypy3")))
    assert not any(map(is_python, (None, "", "/usr/bin/blender", "/opt/editor/ipython-app.d/editor")))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not is_python("/usr/bin/python3.11")


@pytest.mark.usefixtures("two_cores")
def test_a_text_that_cannot_be_compiled_is_an_error_and_leaves_nothing_behind() -> None:
    with pytest.raises(RuntimeError, match="parsing"):
        compiled(["this is no module", *texts()])
    assert no_process_is_left()


@pytest.mark.usefixtures("two_cores")
def test_whoever_stops_in_the_middle_leaves_nothing_behind() -> None:
    with suppress(KeyboardInterrupt), compiler(MANY, chosen("")) as compiles:
        for one in texts():
            compiles.start(one)
        raise KeyboardInterrupt
    assert no_process_is_left()


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("count", [0, 1, MANY])
def test_where_no_thread_can_be_started_whoever_asks_compiles(
    count: int, here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(compilers.Thread, "start", refused)
    assert len(compiled(texts()[:count])) == count
    assert here == texts()[:count]
    assert no_process_is_left()


def test_llvm_that_does_not_come_back_is_left_alone(
    here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes_back = Event()
    isa = chosen("")
    kernels = [
        Code(key_of(f"add {one}", isa, "sources"), f"add_{one}", partial(write, number=one, isa=isa))
        for one in range(3)
    ]
    mine = Library(isa, Cache(str(tmp_path)))
    monkeypatch.setattr(compilers, "GRACE", 0.05)
    try:
        with monkeypatch.context() as stuck, spending(LoadLimits(deadline_s=0.2)):
            stuck.setattr(target, "object_code", lambda *_: comes_back.wait() and b"")
            with pytest.raises(LimitExceeded, match=r"it takes longer than 0\.2 seconds"):
                mine.address(kernels[0])
        assert len(here) == 1
        assert mine.addresses(kernels), "by a process, as LLVM is busy in this one"
        assert len(here) == 1
        assert no_process_is_left()
    finally:
        comes_back.set()
    while is_busy_for_good():
        time.sleep(0.01)
    assert compiled(texts()[:1])
    assert len(here) == 2, "LLVM is back"


PROGRAM = """
import resource, sys
from tract_llvm.isa import chosen
from tract_llvm.objects import compilers
compilers.cores_here = lambda: 2
from tests_of_it import compiled, texts
assert all(compiled(texts()))
assert "tract_llvm.objects.target" in sys.modules  # the tests import it
print(sys.argv, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 30_000)
"""


@needs_scripts
def test_a_program_that_has_no_file_is_not_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "tests_of_it.py").write_text(Path(__file__).read_text())
    changed = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    for command, given in ([["-c", PROGRAM], None], [["-"], PROGRAM]):
        told = subprocess.check_output([sys.executable, *command], env=changed, text=True, input=given)
        assert told == f"['{command[0]}'] True\n"


def test_a_kernel_that_keeps_its_addresses_is_compiled_so_and_the_next_one_is_not() -> None:
    plain, keeps = (module_text(lambda module, one=one: write(module, 3, chosen(""), keeps=one)) for one in (0, 1))
    before = object_code(plain, chosen(""))
    assert object_code(keeps, chosen("")) != before
    assert object_code(plain, chosen("")) == before
