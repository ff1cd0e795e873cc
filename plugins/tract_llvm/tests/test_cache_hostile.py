"""The cache of machine code between two users of one machine: nothing that somebody else could write is ever executed.

Mallory plants what she likes, wherever she may write; whoever else uses the cache, root or not, must not take it, must
not be held up by it, and is told of it once.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tract_core.cache.cache import VARIABLE, Cache, Key, cache_here
from tract_core.cache.claims import FILE
from tract_core.testing.hostile import as_user

ROOT, ALICE, MALLORY = 0, 12001, 12002

KEY, OTHER = Key("a1" * 20, True), Key("b2" * 20, True)
OURS, THEIRS = b"code of ours", b"code of somebody else"

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() != ROOT,
        reason="these tests act as several users of the machine, which only root can do: run them as root",
    ),
]


@pytest.fixture(params=[ROOT, ALICE], ids=["root", "alice"])
def user(request: pytest.FixtureRequest) -> int:
    """Whose cache it is."""
    return request.param


@pytest.fixture
def ground() -> Iterator[Path]:
    """A folder that everybody can enter, and root alone can write to."""
    folder = Path(tempfile.mkdtemp()).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def place(ground: Path, name: str, owner: int, mode: int = 0o755) -> Path:
    """A folder of somebody's."""
    folder = ground / name
    folder.mkdir()
    os.chown(folder, owner, owner)
    folder.chmod(mode)
    return folder


@pytest.fixture
def folder(ground: Path, user: int) -> Path:
    """The cache of the user, with something in it."""
    found = place(ground, "home", user) / "tract"
    assert as_user(user, lambda: Cache.at(found).put(OTHER, OURS))
    return found


@pytest.fixture
def planted(ground: Path) -> Path:
    """A cache of Mallory's, in which there is an entry without a fault."""
    found = place(ground, "mallory", MALLORY) / "tract"
    assert as_user(MALLORY, lambda: Cache.at(found).put(KEY, THEIRS))
    as_user(MALLORY, lambda: (found.chmod(0o755), (found / KEY.file).chmod(0o644)))
    return found


@pytest.fixture(autouse=True)
def _nothing_is_told_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tract_core.cache.cache._TOLD", set())


def asked(cache: Cache | Path, key: Key = KEY) -> tuple[bytes | None, list[str]]:
    """What a cache has, asked twice, and what is told of it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = [(cache if isinstance(cache, Cache) else Cache.at(cache)).get(key) for _ in range(2)]
    assert found[0] == found[1]
    return found[0], [str(one.message) for one in told]


def copied(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o644)


def listener(path: Path) -> None:
    os.chdir(path.parent)  # such names are short
    socket.socket(socket.AF_UNIX).bind(path.name)


KINDS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "file": (copied, f"it belongs to user {MALLORY}"),
    "link": (lambda source, target: target.symlink_to(source), "it is a link"),
    "hard link": (lambda source, target: target.hardlink_to(source), r"it has 2 names (hard links)"),
    "pipe": (lambda _, target: os.mkfifo(target), "it is a pipe"),
    "socket": (lambda _, target: listener(target), "it is a socket"),
    "folder": (lambda _, target: target.mkdir(), "it is a folder"),
}


@pytest.mark.parametrize(("plant", "why"), KINDS.values(), ids=KINDS.keys())
def test_what_was_planted_while_the_folder_was_open_is_told_once_and_left(
    folder: Path, planted: Path, user: int, plant: Callable[[Path, Path], object], why: str
) -> None:
    """Also after the owner has done what the warning advises."""
    entry = folder / KEY.file
    as_user(user, lambda: folder.chmod(0o777))
    as_user(MALLORY, lambda: plant(planted / KEY.file, entry))
    as_user(user, lambda: folder.chmod(0o755))
    before = os.lstat(entry)
    code, told = as_user(user, lambda: asked(folder))
    assert code is None
    assert len(told) == 1
    assert told[0].startswith(f"{str(entry)!r} is not used, as what is in this folder is executed: {why}")
    assert not as_user(user, lambda: Cache.at(folder).put(KEY, OURS))
    after = os.lstat(entry)
    assert os.path.samestat(before, after)
    assert (before.st_uid, before.st_size) == (after.st_uid, after.st_size) == (MALLORY, after.st_size)
    assert as_user(user, lambda: asked(folder, OTHER)) == (OURS, [])  # the rest is as it was


def test_a_file_of_the_users_own_that_others_may_write_to_or_have_a_name_of(
    folder: Path, ground: Path, user: int
) -> None:
    entry = folder / OTHER.file
    entry.chmod(0o622)
    code, told = as_user(user, lambda: asked(folder, OTHER))
    assert (code, len(told)) == (None, 1)
    assert "its mode is 0622" in told[0]
    entry.chmod(0o600)
    second = place(ground, "open", MALLORY) / "name"
    second.hardlink_to(entry)  # as users may on many systems
    code, told = as_user(user, lambda: asked(folder, OTHER))
    assert (code, len(told)) == (None, 1)
    assert "it has 2 names" in told[0]


def test_subfolders_that_were_planted_are_not_looked_into(folder: Path, planted: Path, user: int) -> None:
    as_user(user, lambda: folder.chmod(0o777))
    for name in (KEY.digest[:2], "kernels"):
        as_user(MALLORY, lambda name=name: shutil.copytree(planted, folder / name))
    as_user(user, lambda: folder.chmod(0o755))
    assert as_user(user, lambda: asked(folder)) == (None, [])
    assert as_user(user, lambda: Cache.at(folder).put(KEY, OURS))
    assert as_user(user, lambda: asked(folder)) == (OURS, [])


def test_a_folder_that_leads_nowhere_at_first_is_not_taken_for_safe(ground: Path, planted: Path, user: int) -> None:
    shared = place(ground, "shared", ROOT, 0o1777)  # as /tmp is
    link, folder = shared / "link", shared / "link" / "tract"
    as_user(MALLORY, lambda: link.symlink_to(planted.parent / "later"))
    cache = as_user(user, lambda: _quietly(folder))
    as_user(MALLORY, lambda: os.rename(planted.parent / "tract", planted.parent / "moved"))
    as_user(MALLORY, (planted.parent / "later").mkdir)
    as_user(MALLORY, lambda: os.rename(planted.parent / "moved", planted.parent / "later" / "tract"))
    assert as_user(user, lambda: asked(cache))[0] is None
    code, (told,) = as_user(user, lambda: asked(folder))
    assert code is None
    assert f"others may write to {str(link)!r} (it belongs to user {MALLORY})" in told


def test_a_folder_that_is_there_later_is_looked_at_then(ground: Path, planted: Path, user: int) -> None:
    shared = place(ground, "shared", ROOT, 0o1777)
    cache = Cache(str(shared / "tract"))
    assert as_user(user, lambda: cache.get(KEY)) is None
    as_user(MALLORY, lambda: shutil.copytree(planted, shared / "tract"))
    code, (told,) = as_user(user, lambda: asked(cache))
    assert code is None
    assert f"others may write to {str(shared / 'tract')!r} (it belongs to user {MALLORY})" in told


def test_a_link_of_somebody_elses_is_not_followed_wherever_it_leads_now(
    ground: Path, folder: Path, planted: Path, user: int
) -> None:
    """What it leads to would be looked at, and it would lead elsewhere afterwards."""
    shared = place(ground, "shared", ROOT, 0o1777)
    link = shared / "link"
    as_user(MALLORY, lambda: link.symlink_to(folder.parent))
    cache = as_user(user, lambda: _quietly(link / "tract"))
    as_user(MALLORY, lambda: (link.unlink(), link.symlink_to(planted.parent)))
    assert as_user(user, lambda: asked(cache))[0] is None


def test_a_link_of_the_users_own_is_followed_once(ground: Path, folder: Path, planted: Path, user: int) -> None:
    mine = place(ground, "mine", user)
    as_user(user, lambda: (mine / "link").symlink_to(folder.parent))
    cache = as_user(user, lambda: Cache.at(mine / "link" / "tract"))
    assert cache == Cache(str(folder))


def test_a_relative_path_is_that_of_the_first_time(
    ground: Path, planted: Path, user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, ".")
    mine = place(ground, "mine", user, 0o700)

    def walk() -> tuple[bytes | None, bytes | None, bool]:
        os.chdir(mine)
        first = cache_here()
        kept = first.put(OTHER, OURS)
        os.chdir(planted.parent)
        return cache_here().get(KEY), first.get(OTHER), kept

    assert as_user(user, walk) == (None, OURS, True)


def test_a_folder_that_others_can_exchange_is_not_used(ground: Path, user: int) -> None:
    above = place(ground, "above", user, 0o775)
    code, (told,) = as_user(user, lambda: asked(above / "inner" / "tract"))
    assert code is None
    assert f"others may write to {str(above)!r} (its mode is 0775)" in told
    assert "chmod go-w" in told
    assert list(above.iterdir()) == []
    theirs = place(ground, "theirs", MALLORY)
    code, (told,) = as_user(user, lambda: asked(theirs / "tract"))
    assert f"others may write to {str(theirs)!r} (it belongs to user {MALLORY})" in told


def test_access_lists_count_as_modes_show_them(folder: Path, user: int) -> None:
    entries = [(1, 7, 0), (2, 7, MALLORY), (4, 5, 0), (16, 7, 0), (32, 5, 0)]  # whose; what they may; who
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in entries)
    try:
        os.setxattr(folder, "system.posix_acl_access", packed)
    except OSError:
        pytest.skip("there are no access lists on this file system")
    as_user(MALLORY, lambda: (folder / "planted").write_bytes(b""))
    code, (told,) = as_user(user, lambda: asked(folder, OTHER))
    assert code is None
    assert f"others may write to {str(folder)!r} (its mode is 0775)" in told


def test_root_with_the_home_of_somebody_else_keeps_nothing_there(ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under sudo."""
    home = place(ground, "alice", ALICE)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with pytest.warns(UserWarning, match=f"others may write to '{home}' .it belongs to user {ALICE}"):
        assert cache_here() == Cache(None)
    assert list(home.iterdir()) == []


@contextmanager
def held(user: int, file: Path, flags: int, how: int) -> Generator[None]:
    """Inside, somebody has locked all of a file."""
    ready, tell = os.pipe()
    wait, stop = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            descriptor = os.open(file, flags, 0o666)
            fcntl.lockf(descriptor, how)
            os.write(tell, b"locked")
            os.close(stop)
            os.read(wait, 1)
        finally:
            os._exit(0)
    os.close(tell)
    try:
        assert os.read(ready, 6) == b"locked"
        yield
    finally:
        for one in (stop, ready, wait):
            os.close(one)
        os.waitpid(child, 0)


def _taken(folder: Path) -> tuple[bool, list[str]]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with Cache.at(folder).claims() as claims:
            return claims.take(KEY.digest), [str(one.message) for one in told]


def test_nobody_else_holds_up_whoever_compiles(folder: Path, user: int) -> None:
    locks = folder / FILE
    as_user(user, lambda: folder.chmod(0o777))
    with held(MALLORY, locks, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX):
        as_user(user, lambda: folder.chmod(0o755))
        taken, (told,) = as_user(user, lambda: _taken(folder))
        assert taken
        assert f"{str(locks)!r} is not used" in told
    locks.unlink()
    assert as_user(user, lambda: _taken(folder)) == (True, [])
    with held(user, locks, os.O_RDWR, fcntl.LOCK_EX):  # that it is locked counts otherwise
        assert as_user(user, lambda: _taken(folder)) == (False, [])
    locks.chmod(0o644)
    with held(MALLORY, locks, os.O_RDONLY, fcntl.LOCK_SH):  # whoever may read a file may lock it, too
        assert as_user(user, lambda: _taken(folder)) == (True, [])


def test_what_others_left_is_neither_counted_nor_removed(folder: Path, user: int) -> None:
    as_user(user, lambda: folder.chmod(0o777))
    names = [KEY.file, ".new-99999999-x", "lock"]
    as_user(MALLORY, lambda: [(folder / name).write_bytes(b"x" * 9999) for name in names])
    as_user(user, lambda: folder.chmod(0o755))
    assert as_user(user, lambda: Cache.at(folder, most=1).put(OTHER, OURS))
    assert sorted(os.listdir(folder)) == sorted(names)


def _quietly(folder: Path) -> Cache:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Cache.at(folder)


PROGRAM = """
import sys, warnings
import numpy as np
import tract_core as tract
from tract_llvm.objects import library
compiled, write = [], library.module_text
library.module_text = lambda *arguments: compiled.append(1) or write(*arguments)
runnable = tract.runtime_for_name("cpu").prepare(tract.onnx().load(sys.argv[1]).into_model())
(out,) = runnable.run([np.linspace(0, 1, 128, dtype="f4").reshape(2, 1, 8, 8)])
print(len(compiled), np.asarray(out).tobytes().hex())
"""

MODEL = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"


def run(cache: Path) -> tuple[int, str, str]:
    """How many kernels a process of root compiles, what it computes, and what it tells."""
    environment = {**os.environ, VARIABLE: str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM, str(MODEL)]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    count, result = done.stdout.split()
    return int(count), result, done.stderr


def test_a_whole_program_runs_none_of_it(ground: Path) -> None:
    count, result, told = run(ground)
    assert count > 5
    assert told == ""
    entries = sorted((ground / "tract").glob("*.o"))
    contents = [entry.read_bytes() for entry in entries]
    for entry, content in zip(entries, [*contents[1:], contents[0]], strict=True):
        entry.write_bytes(content)  # which would crash, or compute something else
        os.chown(entry, MALLORY, MALLORY)
    again, same, told = run(ground)
    assert (again, same) == (count, result)
    assert told.count(f"it belongs to user {MALLORY}") == 1
    assert [entry.read_bytes() for entry in entries] == [*contents[1:], contents[0]]
    for entry in entries:
        os.chown(entry, ROOT, ROOT)
    assert run(ground) == (count, result, "")  # of ours, and in the place of another one
    assert [entry.read_bytes() for entry in entries] == contents
    assert run(ground) == (0, result, "")
