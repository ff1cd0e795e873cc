"""Who compiles: this process, or others that it starts for that.

LLVM is loaded in a twentieth of a second, takes 65 MB that are never given back, and, as llvmlite has it, works for one
thread at once. So where several kernels are to be compiled, processes do that which end right afterwards. They are
started as ``python -c``, with nothing of the program that runs here: neither its modules nor its open files. What they
cannot do is done here, as everything is where there is one core, where no such process can be started, or where only
few kernels are missing. The code is the same.

LLVM ends its process where it finds code for tiles that it did not expect. So such code is never made here.

Nor does LLVM always come to an end. It is waited for as long as the limits on preparing a model allow. Then a process
is ended; a thread of this one cannot be, so it is left alone, and processes compile what is asked for later.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread, Timer
from typing import TYPE_CHECKING, Final, Protocol

import llvmlite  # pyright: ignore[reportMissingTypeStubs] # it has none

from tract_core.errors import Unsupported
from tract_core.machine import processors_here
from tract_llvm.llvm import let_forks_wait
from tract_llvm.objects.child import READY, SIZE

if TYPE_CHECKING:
    from subprocess import Popen

    from tract_llvm.isa import Isa

FEW: Final = 4
"""Up to so many kernels are compiled here where LLVM is not loaded yet."""

FEW_MORE: Final = 12
"""The same where it is."""

EACH: Final = 4
"""So many kernels, at least, are worth a process."""

MOST: Final = 4
"""Processes: more would wait for the kernels to be written."""

PATIENCE: Final = 20.0
"""Seconds after which a process that has not answered at all is given up."""

GRACE: Final = 5.0
"""Seconds that are waited for LLVM to come back to this process when nobody wants its code any more."""

_TARGET: Final = "tract_llvm.objects.target"
_COMMAND: Final = "import sys; sys.path += sys.argv[1:3]; from tract_llvm.objects.child import main; main()"
_PLACES: Final = [str(Path(__file__).parents[2]), str(Path(llvmlite.__file__).parents[1])]
"""The folders from which this package and llvmlite were imported."""

_LLVM: Final = Lock()
"""Held by the one thread of this process that compiles."""

_LEFT: Final = Event()
"""Set where a thread of this process was left alone with LLVM."""

_HINT: Final = "have another instruction set used, as by the option isa of the runtime cpu"


class Compiler(Protocol):
    """Makes object files of modules while others are written."""

    def start(self, text: str) -> Future[bytes]:
        """The object file to be."""
        ...

    def finish(self) -> None:
        """Everything that was asked for is done, or nobody wants it any more."""
        ...


@contextmanager
def compiler(count: int, isa: Isa) -> Generator[Compiler]:
    """Who compiles so many kernels. Raises Unsupported where processes must do that, and none can be started."""
    cores, apart = cores_here(), is_made_apart(isa)
    not_here = apart or is_busy_for_good()
    few = 0 if not_here else FEW_MORE if _TARGET in sys.modules else FEW
    processes = _started(min(cores, MOST, count // EACH + 1) if count > few and (not_here or cores > 1) else 0, isa)
    if apart and count and not processes:
        raise Unsupported(f"no process can be started in which LLVM makes code for {isa.name!r}", hint=_HINT)
    found = _by(processes, isa)
    try:
        yield found
    finally:
        found.finish()


def _by(processes: Sequence[Popen[bytes]], isa: Isa) -> Compiler:
    """These processes, or this one where there are none, or no threads that would ask them."""
    if processes:
        with suppress(RuntimeError):  # the system allows no more threads
            return _Others(processes, isa)
        if is_made_apart(isa):
            raise Unsupported(f"no thread can be started that has LLVM make code for {isa.name!r}", hint=_HINT)
    return _Here(isa)


def is_made_apart(isa: Isa) -> bool:
    """Whether LLVM makes code for an instruction set in processes of its own only."""
    return bool(isa.tiles) and not isa.written_out


def is_busy_for_good() -> bool:
    """Whether a thread that was left alone with LLVM still is, as far as anybody can tell."""
    return _LEFT.is_set() and _LLVM.locked()


def cores_here() -> int:
    """How many processors this process may use."""
    return len(processors_here())


def object_code(text: str, isa: Isa) -> bytes:
    """The object file of a module. LLVM is only loaded when something is compiled here."""
    from tract_llvm.objects import target

    with _LLVM:
        return target.object_code(text, isa)


class _Here:
    """A thread of this process, as LLVM leaves the interpreter's lock to others; whoever asks, where there is none."""

    def __init__(self, isa: Isa) -> None:
        self._isa = isa
        self._texts: SimpleQueue[tuple[str, Future[bytes]] | None] = SimpleQueue()
        self._is_over = False
        self._thread: Thread | None = None
        with suppress(RuntimeError):  # the system allows no more threads
            self._thread = _thread(self._compile)

    def start(self, text: str) -> Future[bytes]:
        made: Future[bytes] = Future()
        if self._thread is None:
            _settle(made, partial(object_code, text, self._isa))
        else:
            self._texts.put((text, made))
        return made

    def finish(self) -> None:
        self._is_over = True
        if self._thread is not None:
            self._texts.put(None)
            _wait_for(self._thread)

    def _compile(self) -> None:
        while (asked := self._texts.get()) is not None and not self._is_over:
            text, made = asked
            _settle(made, partial(object_code, text, self._isa))


class _Others:
    """Processes, each asked by a thread, which does the work itself where its process cannot."""

    def __init__(self, processes: Sequence[Popen[bytes]], isa: Isa) -> None:
        self._isa = isa
        self._processes = processes
        self._answered: set[Popen[bytes]] = set()
        self._is_over = False
        self._texts: SimpleQueue[tuple[str, Future[bytes]] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._patience = Timer(PATIENCE, self._give_up)
        try:
            for process in processes:
                self._threads.append(_thread(partial(self._serve, process)))
            self._patience.daemon = True
            self._patience.start()
        except RuntimeError:  # the system allows no more threads
            self.finish()
            raise

    def start(self, text: str) -> Future[bytes]:
        made: Future[bytes] = Future()
        self._texts.put((text, made))
        return made

    def finish(self) -> None:
        self._is_over = True
        self._patience.cancel()
        for process in self._processes:
            _end(process)
            self._texts.put(None)
        for thread in self._threads:
            _wait_for(thread)
        for process in self._processes:
            _forget(process)

    def _give_up(self) -> None:
        """Have done without processes that have not answered by now."""
        for process in self._processes:
            if process not in self._answered:
                _end(process)

    def _serve(self, process: Popen[bytes]) -> None:
        is_there = _read(process, len(READY)) == READY
        self._answered.add(process)
        while (asked := self._texts.get()) is not None and not self._is_over:
            text, made = asked
            code = _answer(process, text) if is_there else None
            is_there = code is not None
            if self._is_over:
                return  # nobody wants it any more
            if code:
                made.set_result(code)
            else:
                _settle(made, partial(self._made_here, text))

    def _made_here(self, text: str) -> bytes:
        """What a process could not make."""
        if is_made_apart(self._isa):
            raise Unsupported(f"LLVM ended, or made no code for {self._isa.name!r}", hint=_HINT)
        return object_code(text, self._isa)


def _thread(work: Callable[[], None]) -> Thread:
    """A thread that is at work. Raises RuntimeError where the system allows no more of them."""
    thread = Thread(target=work, name="tract-cpu-compiler", daemon=True)
    thread.start()
    return thread


def _wait_for(thread: Thread) -> None:
    """Wait for a thread whose work is over, or leave it alone with LLVM."""
    thread.join(GRACE)
    if thread.is_alive():
        _LEFT.set()


def _settle(made: Future[bytes], code: Callable[[], bytes]) -> None:
    """Have a future give what ``code`` gives, or raise what it raises."""
    try:
        made.set_result(code())
    except BaseException as error:
        made.set_exception(error)


def _answer(process: Popen[bytes], text: str) -> bytes | None:
    """What a process says to a question: nothing where it found an error, ``None`` where it is gone."""
    assert process.stdin is not None
    question = text.encode()
    try:
        process.stdin.write(SIZE.pack(len(question)) + question)
        process.stdin.flush()
    except OSError:
        return None
    head = _read(process, SIZE.size)
    if len(head) < SIZE.size:
        return None
    (size,) = SIZE.unpack(head)
    code = _read(process, size)
    return code if len(code) == size else None


def _read(process: Popen[bytes], size: int) -> bytes:
    """So many bytes of an answer, or fewer where the process ends."""
    assert process.stdout is not None
    try:
        return process.stdout.read(size)
    except OSError:
        return b""


def _started(count: int, isa: Isa) -> list[Popen[bytes]]:
    """So many processes that compile, or as many as can be started."""
    found: list[Popen[bytes]] = []
    if count and is_python(sys.executable):
        command = [sys.executable, "-I", "-S", "-c", _COMMAND, *_PLACES, isa.architecture, isa.processor, isa.features]
        with suppress(OSError):  # as where the system allows no more of them
            found.extend(_process(command) for _ in range(count))
    return found


def _process(command: Sequence[str]) -> Popen[bytes]:
    import subprocess  # which takes some milliseconds

    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,  # so that all it may start ends with it
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # there are windows on Windows
    )


def _end(process: Popen[bytes]) -> None:
    """Have a process end, and whatever it has started."""
    with suppress(OSError):  # it is gone
        if sys.platform == "win32":  # where it starts nothing
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _forget(process: Popen[bytes]) -> None:
    """Close the pipes of a process that has ended, and have the system forget it."""
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(OSError):  # what was to be written is of no use
            pipe.close()
    process.wait()


def is_python(executable: str | None) -> bool:
    """Whether a program is Python itself: whoever has it as a part would start once more."""
    name = Path(executable or "").name.lower()
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


let_forks_wait()  # for the locks of `concurrent.futures`, and of the plugins, which are there by now
