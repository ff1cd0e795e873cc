"""Many uses at once, and systems where something is wrong: right results or a clear error, and nothing hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SECONDS = 120
"""After so long a process hangs; each takes moments."""

needs_locks = pytest.mark.skipif(sys.platform == "win32", reason="files are not locked on this system")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")

BEGIN = """
import os, signal, sys, threading, time, warnings
import numpy as np
from tract_llvm.isa import chosen
from tract_cpu.plan import CpuPlan
from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Exp, Tanh

WEIGHTS = np.random.default_rng(0).standard_normal((200, 200)).astype("f4") / 50

def prepared(op=Tanh, threads=2):
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("M,200,f32", model.symbols))
    w = model.add_const("w", WEIGHTS)
    (x,) = model.wire_node("p", EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F32), [x, w])
    model.set_outputs(model.wire_node("y", op(), [x]))
    return CpuPlan(model, chosen(""), threads)

def x(rows):
    return np.random.default_rng(rows).standard_normal((rows, 200)).astype("f4")

def wanted(rows, op=np.tanh):  # without the threads of NumPy's BLAS, next to which no process can be forked
    return op(np.einsum("mk,kn->mn", x(rows).astype("f8"), WEIGHTS))

def is_right(plan, rows, op=np.tanh):
    return np.allclose(plan.spawn().run([x(rows)])[0], wanted(rows, op), atol=1e-4)
"""

THREADS_AND_FORKS = """
warnings.simplefilter("ignore")  # about forks with threads
plan = prepared()
problems = []

def work(number):
    state = plan.spawn()
    result = wanted(30 + number)
    for turn in range(30):
        if not np.allclose(state.run([x(30 + number)])[0], result, atol=1e-4):
            problems.append(number)
        if turn == number:
            prepared(threads=2)

def forked(number):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # one that hangs ends with this signal
        good = is_right(plan, 90) and is_right(prepared(Exp), 20, np.exp)
        os._exit(0 if good else 1)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        problems.append(("fork", number))

threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
for number, thread in enumerate(threads):
    thread.start()
    if number % 4 == 3:
        forked(number)
for thread in threads:
    thread.join()
assert problems == [], problems
"""

FORK_WHILE_COMPILING = """
warnings.simplefilter("ignore")
plan = prepared()
from tract_llvm.objects import library
write, began = library.module_text, threading.Event()

def slowly(*arguments):
    began.set()
    time.sleep(0.5)
    return write(*arguments)

library.module_text = slowly
other = threading.Thread(target=prepared, args=(Exp,))
other.start()
began.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)
    library.module_text = write
    os._exit(0 if is_right(prepared(Exp), 20, np.exp) and is_right(plan, 90) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
other.join()
"""

TORCH = """
import torch
torch.set_num_threads(2)
plan, problems = prepared(), []
matrix = torch.ones(300, 300)

def work():
    for _ in range(50):
        if not is_right(plan, 64):
            problems.append("ours")

thread = threading.Thread(target=work)
thread.start()
for _ in range(50):
    if (matrix @ matrix)[0, 0] != 300:
        problems.append("torch")
thread.join()
assert problems == [], problems
"""

INTERRUPTED = """
is_running, interrupts = False, 0

def interrupted(number, frame):
    global is_running
    if is_running:
        is_running = False
        raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupted)
plan = prepared()
state, given = plan.spawn(), x(64)
result = state.run([given])[0].copy()

def interrupt():
    random = np.random.default_rng(0)
    while interrupts <= 100:
        time.sleep(random.uniform(0.0005, 0.002))
        os.kill(os.getpid(), signal.SIGINT)

thread = threading.Thread(target=interrupt, daemon=True)
thread.start()
while interrupts <= 100:
    try:
        is_running = True
        found = state.run([given])[0]
        is_running = False
        assert np.array_equal(found, result)
    except KeyboardInterrupt:
        interrupts += 1
thread.join()
assert np.array_equal(state.run([given])[0], result)
"""

RIGHT = """
assert is_right(prepared(), 70)
"""

COMPILES_NOTHING = """
from tract_llvm.objects import library
library.module_text = None
"""

TOGETHER = """
from tract_core.cache import claims
from tract_llvm.objects import library
claims.PATIENCE = 1e9
folder, count = os.environ["TRACT_CACHE"], int(os.environ["PROCESSES"])
compiled, write = [], library.module_text

def slowly(*arguments):
    compiled.append(1)
    time.sleep(0.1)
    return write(*arguments)

library.module_text = slowly
open(os.path.join(folder, f"ready-{os.getpid()}"), "w").close()
while sum(name.startswith("ready") for name in os.listdir(folder)) < count:
    time.sleep(0.001)
plans = [prepared(), prepared(Exp)]
assert is_right(plans[0], 70) and is_right(plans[1], 70, np.exp)
open(os.path.join(folder, f"compiled-{len(compiled)}-{os.getpid()}"), "w").close()
"""

IN_THE_MIDDLE = """
from tract_llvm.objects import library
library.module_text = lambda *arguments: os.kill(os.getpid(), getattr(signal, os.environ["ENDS_BY"]))
prepared()
"""

AFTER_IT = """
from tract_core.cache import claims
claims.PATIENCE = float(os.environ["PATIENCE"])
assert is_right(prepared(), 70)
"""


def start(
    script: str, cache: Path, limit: Callable[[], None] | None = None, **variables: object
) -> subprocess.Popen[str]:
    """A process that runs a script, with variables of the environment. ``limit`` is called in it first."""
    changed = {"TRACT_CACHE": str(cache), "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONFAULTHANDLER": "1"}
    changed |= {name: str(value) for name, value in variables.items()}
    command = [sys.executable, "-c", BEGIN + script]
    return subprocess.Popen(
        command,
        env={**os.environ, **changed},
        text=True,
        stderr=subprocess.PIPE,
        preexec_fn=limit,  # noqa: PLW1509 - no other threads here
    )


def finish(process: subprocess.Popen[str]) -> None:
    """It ends, in time and without an error."""
    try:
        _, told = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, told


@needs_fork
def test_sixteen_threads_with_a_state_each_and_forks_in_the_middle(tmp_path: Path) -> None:
    finish(start(THREADS_AND_FORKS, tmp_path))


@needs_fork
def test_a_fork_while_another_thread_compiles(tmp_path: Path) -> None:
    finish(start(FORK_WHILE_COMPILING, tmp_path))


def test_beside_the_threads_of_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    finish(start(TORCH, tmp_path))


def test_a_run_that_is_interrupted_leaves_no_thread_that_waits_for_it(tmp_path: Path) -> None:
    finish(start(INTERRUPTED, tmp_path))


def test_two_processes_that_fill_the_cache_at_once(tmp_path: Path) -> None:
    both = [start(RIGHT, tmp_path) for _ in range(2)]
    for one in both:
        finish(one)
    assert kept(tmp_path) != []
    finish(start(COMPILES_NOTHING + RIGHT, tmp_path))


def compiled_by(cache: Path) -> list[int]:
    """How many kernels each process compiled that took part."""
    return sorted(int(path.name.split("-")[1]) for path in cache.glob("compiled-*"))


@needs_locks
def test_processes_that_start_together_compile_each_kernel_once(tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir(mode=0o700)
    finish(start(TOGETHER, alone, PROCESSES=1))
    (count,) = compiled_by(alone)
    for one in [start(TOGETHER, tmp_path, PROCESSES=3) for _ in range(3)]:
        finish(one)
    each = compiled_by(tmp_path)
    assert len(each) == 3
    assert sum(each) == count


@needs_locks
def test_a_process_that_is_killed_while_it_compiles_holds_up_nobody(tmp_path: Path) -> None:
    killed = start(IN_THE_MIDDLE, tmp_path, ENDS_BY="SIGKILL")
    assert killed.wait(SECONDS) == -signal.SIGKILL
    finish(start(AFTER_IT, tmp_path, PATIENCE=1e9))


@needs_locks
def test_a_process_that_is_stopped_while_it_compiles_is_not_waited_for_long(tmp_path: Path) -> None:
    stopped = start(IN_THE_MIDDLE, tmp_path, ENDS_BY="SIGSTOP")
    try:
        assert os.WIFSTOPPED(os.waitpid(stopped.pid, os.WUNTRACED)[1])
        finish(start(AFTER_IT, tmp_path, PATIENCE=0.2))
        finish(start(COMPILES_NOTHING + RIGHT, tmp_path))
    finally:
        stopped.kill()
        stopped.wait()


NO_LOCKS = """
import fcntl
def lockf(*_):
    raise OSError(37, "No locks available")
fcntl.lockf = lockf
"""

NO_FCNTL = """
sys.modules["fcntl"] = None
"""


@pytest.mark.parametrize("lacking", [NO_LOCKS, NO_FCNTL], ids=["no locks", "no fcntl"])
def test_where_nothing_can_be_locked_everybody_compiles(tmp_path: Path, lacking: str) -> None:
    for one in [start(lacking + RIGHT, tmp_path) for _ in range(2)]:
        finish(one)
    finish(start(COMPILES_NOTHING + RIGHT, tmp_path))


@needs_locks
def test_a_folder_that_may_only_be_read(tmp_path: Path) -> None:
    """What is in it is used, and nothing else is waited for."""
    finish(start(RIGHT, tmp_path))
    before = kept(tmp_path)
    finish(start(READ_ONLY + COMPILES_NOTHING + RIGHT, tmp_path))
    finish(start(READ_ONLY + "assert is_right(prepared(Exp), 20, np.exp)", tmp_path))
    assert kept(tmp_path) == before


READ_ONLY = """
import errno
real = os.open
def only_read(path, flags, *rest, **more):
    if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        raise OSError(errno.EROFS, "Read-only file system", path)
    return real(path, flags, *rest, **more)
def refuse(*_, **__):
    raise OSError(errno.EROFS, "Read-only file system")
os.open, os.utime, os.mkdir, os.unlink = only_read, refuse, refuse, refuse
"""


def test_without_a_home(tmp_path: Path) -> None:
    finish(start("del os.environ['TRACT_CACHE']\n" + RIGHT, tmp_path, HOME="/nonexistent/home"))


def test_a_full_disk(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="the system has no such limits")

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

    finish(start(RIGHT, tmp_path, full))
    assert kept(tmp_path) == []
    finish(start(RIGHT, tmp_path))
    assert kept(tmp_path) != []


@pytest.mark.parametrize("damage", [b"", b"no code", None], ids=["empty", "something else", "cut off"])
def test_damaged_files_in_the_cache(tmp_path: Path, damage: bytes | None) -> None:
    finish(start(RIGHT, tmp_path))
    before = {file: file.read_bytes() for file in kept(tmp_path)}
    for file, content in before.items():
        file.write_bytes(content[:-5] if damage is None else damage)
    finish(start(RIGHT, tmp_path))
    assert {file: file.read_bytes() for file in kept(tmp_path)} == before


MANY_KERNELS = """
from tract_core.ops import elementwise
from tract_core.runtime.plan import TypedSimplePlan
from tract_llvm.objects import library
compiled, write = [], library.module_text
library.module_text = lambda *arguments: compiled.append(1) or write(*arguments)
names = "Acos Asin Atan Ceil Cos Cosh Erf Exp Floor HardSwish Neg Round Sigmoid Sign Silu Sin Sinh Square Tan Tanh"
for name in names.split():
    model = TypedModel()
    outlet = model.add_source("x", parse_typed_fact("M,200,f32", model.symbols))
    model.set_outputs(model.wire_node("y", getattr(elementwise, name)(), [outlet]))
    found, wanted = (plan.spawn().run([x(9) / 10])[0] for plan in (CpuPlan(model, chosen("")), TypedSimplePlan(model)))
    assert np.allclose(found, wanted, atol=1e-5), name
assert len(compiled) == int(os.environ["COMPILES"]), compiled
"""


def test_entries_in_the_places_of_each_other_are_compiled_again(tmp_path: Path) -> None:
    count = 20 + 4  # kernels, the executor in both its forms, its helper, and what repeats a turn
    finish(start(MANY_KERNELS, tmp_path, COMPILES=count))
    before = {file: file.read_bytes() for file in kept(tmp_path)}
    for file, content in zip(before, [*list(before.values())[1:], *before.values()], strict=False):
        file.write_bytes(content)
    finish(start(MANY_KERNELS, tmp_path, COMPILES=count))
    assert {file: file.read_bytes() for file in kept(tmp_path)} == before
    finish(start(MANY_KERNELS, tmp_path, COMPILES=0))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system has no folder in which nobody can write")
def test_a_folder_in_which_nobody_can_write() -> None:
    finish(start(RIGHT, Path("/proc/self/tract")))


def kept(folder: Path) -> list[Path]:
    """The kernels in a cache; nothing else is there but the file of locks."""
    files = {path for path in (folder / "tract").rglob("*") if path.is_file()}
    kernels = {path for path in files if path.suffix == ".o"}
    assert {path.name for path in files - kernels} <= {"lock"}
    return sorted(kernels)
