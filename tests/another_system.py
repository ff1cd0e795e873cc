"""What a module of ours sees on another system, in a process of this one.

`pretend` puts other modules in the place of `sys`, `os` and their like: `sys.platform` is that of the system, and what
POSIX has and the system has not is gone. Whoever has imported them already keeps what he has, so modules of others, and
of the standard library, have to be imported before; `import_what_is_used_of_others` does it, and runs nothing of ours.
"""

from __future__ import annotations

import ast
import ctypes
import importlib
import importlib.util
import mmap
import os
import pkgutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

OURS = [
    name
    for name in (
        "tract_core", "tract_onnx", "tract_nnef", "tract_llvm", "tract_cpu", "tract_cuda", "tract_metal", "tract_pulse",
        "tract_gguf", "tract_tensorflow", "tract_transformers", "tract_inferers", "tract_quantize", "tract_ray",
        "tract_serve", "tract_torch", "tract_view", "tract",
    )
    if importlib.util.find_spec(name)
]  # fmt: skip
"""Packages of all distributions that are installed."""

GONE = {
    "win32": {
        "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty", "_posixshmem",
        "_posixsubprocess",
    },
    "darwin": set[str](),
}  # fmt: skip
"""Modules that a system has not."""

POSIX = {
    "os": """
        CLD_CONTINUED CLD_DUMPED CLD_EXITED CLD_KILLED CLD_STOPPED CLD_TRAPPED EFD_CLOEXEC EFD_NONBLOCK EFD_SEMAPHORE
        EX_CANTCREAT EX_CONFIG EX_DATAERR EX_IOERR EX_NOHOST EX_NOINPUT EX_NOPERM EX_NOUSER EX_OSERR EX_OSFILE
        EX_PROTOCOL EX_SOFTWARE EX_TEMPFAIL EX_UNAVAILABLE EX_USAGE F_LOCK F_TEST F_TLOCK F_ULOCK NGROUPS_MAX O_ACCMODE
        O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_LARGEFILE O_NDELAY O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK
        O_PATH O_RSYNC O_SYNC O_TMPFILE POSIX_FADV_DONTNEED POSIX_FADV_NOREUSE POSIX_FADV_NORMAL POSIX_FADV_RANDOM
        POSIX_FADV_SEQUENTIAL POSIX_FADV_WILLNEED POSIX_SPAWN_CLOSE POSIX_SPAWN_DUP2 POSIX_SPAWN_OPEN PRIO_PGRP
        PRIO_PROCESS PRIO_USER P_ALL P_PGID P_PID P_PIDFD RTLD_DEEPBIND RTLD_GLOBAL RTLD_LAZY RTLD_LOCAL RTLD_NODELETE
        RTLD_NOLOAD RTLD_NOW SCHED_BATCH SCHED_FIFO SCHED_IDLE SCHED_OTHER SCHED_RESET_ON_FORK SCHED_RR SPLICE_F_MORE
        ST_APPEND ST_NOSUID ST_RDONLY WCONTINUED WCOREDUMP WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED
        WIFSTOPPED WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED XATTR_CREATE chown chroot confstr confstr_names
        copy_file_range ctermid environb eventfd fchdir fchown fdatasync fork forkpty fpathconf fstatvfs fwalk getcwdb
        getegid getenvb geteuid getgid getgrouplist getgroups getloadavg getpgid getpgrp getpriority getresgid
        getresuid getsid getuid getxattr grantpt initgroups killpg lchown listxattr lockf login_tty major makedev
        memfd_create minor mkfifo mknod nice openpty pathconf pathconf_names pidfd_open pipe2 posix_fadvise
        posix_fallocate posix_openpt posix_spawn posix_spawnp pread preadv ptsname pwrite pwritev register_at_fork
        removexattr sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getparam sched_getscheduler
        sched_param sched_rr_get_interval sched_setaffinity sched_setparam sched_setscheduler sched_yield sendfile
        setegid seteuid setgid setgroups setns setpgid setpriority setregid setresgid setresuid setreuid setsid setuid
        setxattr splice statvfs statvfs_result sync sysconf sysconf_names tcgetpgrp tcsetpgrp timerfd_create ttyname
        uname uname_result unlockpt unshare wait wait3 wait4 waitid waitid_result writev
    """,
    "mmap": """
        MADV_DONTDUMP MADV_DONTFORK MADV_DONTNEED MADV_DODUMP MADV_DOFORK MADV_FREE MADV_HUGEPAGE MADV_HWPOISON
        MADV_MERGEABLE MADV_NOHUGEPAGE MADV_NORMAL MADV_RANDOM MADV_REMOVE MADV_SEQUENTIAL MADV_UNMERGEABLE
        MADV_WILLNEED MAP_ANON MAP_ANONYMOUS MAP_DENYWRITE MAP_EXECUTABLE MAP_NORESERVE MAP_POPULATE MAP_PRIVATE
        MAP_SHARED MAP_STACK PROT_EXEC PROT_READ PROT_WRITE
    """,
    "signal": """
        ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGHUP SIGIO SIGIOT SIGKILL SIGPIPE
        SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSTKFLT SIGSTOP SIGSYS SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG
        SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm getitimer pause
        pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigtimedwait sigwait sigwaitinfo
    """,
    "time": "clock_getres clock_gettime clock_settime pthread_getcpuclockid tzset",
    "select": "epoll poll",
    "socket": "AF_UNIX",
    "faulthandler": "register unregister",
}
"""What Windows has not of modules that it has. Source: the remarks on availability in the library's documentation."""

LINUX = {
    "os": """
        memfd_create sched_getaffinity sched_setaffinity sched_getparam sched_getscheduler posix_fadvise posix_fallocate
        O_DIRECT O_NOATIME O_PATH O_TMPFILE O_RSYNC O_LARGEFILE pipe2 splice eventfd getxattr listxattr setxattr
        removexattr copy_file_range getresgid getresuid setresgid setresuid fdatasync sched_setscheduler sched_setparam
        pidfd_open setns unshare EFD_CLOEXEC
    """,
    "mmap": "MADV_HUGEPAGE MADV_NOHUGEPAGE MAP_POPULATE MADV_DONTDUMP MADV_DONTFORK MADV_MERGEABLE MADV_REMOVE",
    "signal": "SIGCLD SIGPOLL SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT sigtimedwait sigwaitinfo",
    "select": "epoll",
}
"""The same of macOS."""


MEMORY = 12345 << 20
"""Bytes that the other machine has."""


class Another(ModuleType):
    """A module without some of what it has."""

    def __init__(self, genuine: ModuleType, gone: Sequence[str], **others: object) -> None:
        super().__init__(genuine.__name__)
        self.__dict__.update({"genuine_module": genuine, "gone_names": frozenset(gone), **others})

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__["gone_names"]:
            raise AttributeError(f"there is no {self.__name__}.{name} on this system", name=name, obj=self)
        return getattr(self.__dict__["genuine_module"], name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self.__dict__["genuine_module"])} - self.__dict__["gone_names"])


def pretend(system: str) -> None:
    """From now on, whatever is imported anew is on ``win32`` or ``darwin``."""
    names = {"win32": "Windows", "darwin": "Darwin"}
    is_windows = system == "win32"
    others: dict[str, dict[str, object]] = {
        "sys": {"platform": system},
        "platform": {"system": lambda: names[system]},
        "os": {"supports_dir_fd": set[Any](), "name": "nt", "O_BINARY": 0, "open": _open} if is_windows else {},
        "mmap": {"mmap": _Mapped} if is_windows else {},
        "ctypes": {"CDLL": _Library, "WinDLL": _LibraryOfWindows} if is_windows else {},
    }
    gone = POSIX if is_windows else LINUX
    for name in {*others, *gone}:
        genuine = importlib.import_module(name)
        sys.modules[name] = Another(genuine, gone.get(name, "").split(), **others.get(name, {}))
    for name in GONE[system]:
        sys.modules[name] = None  # type: ignore[assignment] # the documented way to have an import fail


class _Mapped(mmap.mmap):
    """As Windows makes it."""

    def __new__(cls, fileno: int, length: int, tagname: str | None = None, access: int = 0, offset: int = 0) -> _Mapped:
        assert tagname is None, "nobody shares memory by a name"
        return super().__new__(cls, fileno, length, access=access, offset=offset)

    def __getattribute__(self, name: str) -> Any:
        if name == "madvise":
            raise AttributeError(name)
        return super().__getattribute__(name)


class _Library(ctypes.CDLL):
    """As Windows finds it: by a name."""

    def __init__(self, name: str | None, *arguments: Any, **named: Any) -> None:
        if name is None:
            raise TypeError("argument of type 'NoneType' is not iterable")
        super().__init__(name, *arguments, **named)


class _LibraryOfWindows:
    """The functions of Windows that are asked for without anything being compiled."""

    def __init__(self, name: str) -> None:
        assert name.removesuffix(".dll") in {"kernel32", "ntdll", "ucrtbase", "msvcrt"}

    def GlobalMemoryStatusEx(self, status: Any) -> int:  # noqa: N802 (as it is called there)
        if status._obj[0] != 64:
            return 0
        status._obj[1] = MEMORY
        return 1


def _open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    return os.open(path, flags, mode)


def imported_all() -> dict[str, str]:
    """Import all modules of ours. Returns what went wrong, by module; what an extra would bring may be missing."""
    wrong: dict[str, str] = {}

    def noted(name: str) -> None:
        wrong[name] = repr(sys.exc_info()[1])

    for package in OURS:
        found = importlib.import_module(package)
        names = [one.name for one in pkgutil.walk_packages(found.__path__, f"{package}.", noted)]
        for name in names:
            if name.endswith(".__main__"):  # which would run
                continue
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                missing = (error.name or "").partition(".")[0]
                if missing in sys.modules or importlib.util.find_spec(missing):
                    wrong[name] = repr(error)
            except Exception as error:
                wrong[name] = repr(error)
    return wrong


def import_what_is_used_of_others(packages: Sequence[str]) -> None:
    """Import what modules of ``packages`` import, wherever in them they do so, but for other modules of ours."""
    names = {name for package in packages for path in _sources(package) for name in _imported(path)}
    for name in sorted(names):
        if name.partition(".")[0] not in OURS:
            with suppress(ImportError, OSError):  # that of an extra, or of another system
                importlib.import_module(name)


def _sources(package: str) -> Iterator[Path]:
    found = importlib.util.find_spec(package)
    assert found is not None, package
    for folder in found.submodule_search_locations or ():
        yield from Path(folder).rglob("*.py")


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def main(system: str) -> None:
    """Import all, and use what needs no compiler. The exit status says whether all of it is as it should be."""
    import_what_is_used_of_others(OURS)
    pretend(system)
    wrong = imported_all()
    for name, why in wrong.items():
        sys.stdout.write(f"{name}: {why}\n")
    if not wrong:
        use()
        sys.stdout.write(f"{len([name for name in sys.modules if name.partition('.')[0] in OURS])} modules\n")
    sys.exit(bool(wrong))


def use() -> None:
    """A network is read, written, read again and run; a command tells what there is."""
    import numpy as np
    from onnx import parser

    import tract_core as tract
    from tract_core.cli import main as command
    from tract_core.machine import built_in_memory

    graph = "(float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}> { a = MatMul(x, w) y = Relu(a) }"
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> agraph {graph}')
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.onnx").write_bytes(proto.SerializeToString())
        model = tract.load(Path(folder, "model.onnx"))
        for _ in range(2):  # the second file takes the place of the first
            model.save(Path(folder, "model.nnef.tgz"))
        again = tract.load(Path(folder, "model.nnef.tgz"))
        runnable = tract.runtime_for_name("reference").prepare(again)
        (found,) = runnable.run([np.array([[1, -1, 1], [0, 0, -1]], "f4")])
    np.testing.assert_array_equal(np.asarray(found), [[3, 4], [0, 0]])
    assert (built_in_memory() == MEMORY) == (sys.modules["sys"].platform == "win32")
    with suppress(SystemExit):
        sys.argv[1:] = ["--help"]
        command()


if __name__ == "__main__":
    main(sys.argv[1])
