"""The cache of object code: kept between processes, and left out whenever anything is unusual."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from tract_llvm.isa import ISAS
from tract_llvm.objects.origins import key_of

from tract_core.cache.cache import (
    MOST_BYTES,
    ONLY_HERE,
    Cache,
    CacheWarning,
    Key,
    cache_here,
    named_folder,
    named_size,
)
from tract_core.cache.entries import BLOCK, on_disk
from tract_core.cache.eviction import evict
from tract_core.errors import InputError
from tract_core.trusted_files import trusted_folder

KEY = key_of("a kernel", ISAS[0], "sources")

needs_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no owners of this kind")


def test_what_was_put_is_there(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "new" / "folder"))
    assert cache.get(KEY) is None
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"


@pytest.mark.parametrize("damage", [slice(None, -1), slice(0), slice(5, None)], ids=["cut off", "empty", "moved"])
def test_a_damaged_file_is_not_used_and_is_replaced(tmp_path: Path, damage: slice) -> None:
    cache = Cache(str(tmp_path))
    cache.put(KEY, b"code")
    (file,) = tmp_path.rglob("*.o")
    file.write_bytes(file.read_bytes()[damage])
    assert cache.get(KEY) is None
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"


def test_a_system_without_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Windows, where files are not opened in folders that are open."""
    monkeypatch.setattr(sys, "platform", "win32")
    cache = Cache.at(tmp_path / "new" / "folder", most=3 * BLOCK)
    assert cache == Cache(str(tmp_path / "new" / "folder"), most=3 * BLOCK)
    keys = some(cache, 4)
    assert [cache.get(key) is not None for key in keys] == [False, False, True, True]
    with cache.claims() as claims:
        assert claims.take(KEY.digest)
    assert sorted(os.listdir(cache.folder or "")) == sorted(["lock", *(key.file for key in keys[2:])])


@needs_owners
def test_what_is_not_used_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tract_core.cache.cache._TOLD", set())
    cache = Cache(str(tmp_path))
    keys = some(cache, 3)
    for key in keys:
        (tmp_path / key.file).chmod(0o666)
    with pytest.warns(
        CacheWarning, match=r"is not used.* its mode is 0666 .hint: remove it; 'tract cache' lists"
    ) as told:
        assert cache.find(keys) == {}
    assert len(told) == 1
    assert not cache.put(keys[0], b"code")
    assert stat.S_IMODE((tmp_path / keys[0].file).stat().st_mode) == 0o666
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.find(keys) == {}


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = Cache(str(tmp_path / "file"))
    assert not cache.put(KEY, b"code")
    assert cache.get(KEY) is None
    with cache.claims() as claims:
        assert claims.take(KEY.digest)
    assert Cache.at(tmp_path / "file") == Cache(None)


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    assert not Cache(str(tmp_path)).put(KEY, b"code")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("named", ["", "0"])
def test_the_environment_turns_it_off(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("TRACT_CACHE", named)
    assert named_folder() is None


def test_the_environment_moves_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRACT_CACHE", str(tmp_path))
    assert named_folder() == str(tmp_path / "tract")


def test_a_relative_path_is_one_of_the_folder_of_the_first_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACT_CACHE", f"relative-{tmp_path.name}")  # which nothing else asks for
    before = named_folder()
    assert before == str(tmp_path / f"relative-{tmp_path.name}" / "tract")
    monkeypatch.chdir("/")
    assert named_folder() == before


def test_a_relative_folder_of_caches_does_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As the XDG Base Directory Specification has it."""
    monkeypatch.delenv("TRACT_CACHE", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert named_folder() == str(tmp_path / ".cache" / "tract")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert named_folder() == str(tmp_path / "other" / "tract")


def test_without_a_current_folder_a_relative_path_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setenv("TRACT_CACHE", f"gone-{tmp_path.name}")
    assert named_folder() is None
    monkeypatch.chdir(tmp_path)


def test_the_key_depends_on_everything() -> None:
    keys = {key_of(text, isa, sources) for text in ("a", "b") for isa in ISAS[:2] for sources in ("c", "d")}
    assert len(keys) == 8


def test_an_entry_in_the_place_of_another_one_is_not_used(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path))
    keys = [key_of(f"kernel {number}", ISAS[0], "sources") for number in range(20)]
    for number, key in enumerate(keys):
        assert cache.put(key, b"code %d" % number)
    contents = [(tmp_path / key.file).read_bytes() for key in keys]
    for key, content in zip(keys, [*contents[1:], contents[0]], strict=True):
        (tmp_path / key.file).write_bytes(content)
    assert cache.find(keys) == {}
    for number, key in enumerate(keys):
        assert cache.put(key, b"code %d" % number)
    assert list(cache.find(keys).values()) == [b"code %d" % number for number in range(20)]


def test_an_entry_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path))
    with (tmp_path / KEY.file).open("wb") as file:
        file.truncate(1 << 40)  # without taking room on the disk
    assert cache.get(KEY) is None
    assert cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"
    assert os.listdir(tmp_path) == [KEY.file]


def some(cache: Cache, count: int, size: int = BLOCK) -> list[Key]:
    """Entries that take ``size`` bytes on the disk each, the first one unused longest: an hour each."""
    assert cache.folder is not None
    keys = [key_of(f"kernel {number}", ISAS[0], "sources") for number in range(count)]
    for number, key in enumerate(keys):
        assert cache.put(key, bytes(size - 100))
        os.utime(os.path.join(cache.folder, key.file), (time.time() - 3600 * (count - number),) * 2)
    return keys


def test_what_was_unused_longest_makes_room(tmp_path: Path) -> None:
    keys = some(Cache(str(tmp_path)), 20)
    cache = Cache(str(tmp_path), most=10 * BLOCK)
    assert cache.get(keys[3]) is not None  # which was used now, and so stays
    assert cache.put(KEY, b"code")
    left = [key for key in keys if cache.get(key) is not None]
    assert left == [keys[3], *keys[-len(left) + 1 :]]
    assert 7 <= len(left) <= 9
    assert cache.get(KEY) == b"code"


def test_there_is_never_more_than_is_allowed(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path), most=40 * BLOCK)
    most = 0
    for number in range(200):
        assert cache.put(key_of(f"kernel {number}", ISAS[0], "sources"), bytes(5000))
        most = max(most, sum(on_disk(path.stat().st_size) for path in tmp_path.iterdir()))
    assert 30 * BLOCK <= most <= 40 * BLOCK
    nothing = Cache(str(tmp_path), most=0)
    assert nothing.put(KEY, b"code")
    assert os.listdir(tmp_path) == []


def test_a_full_folder_is_not_looked_at_for_every_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr("tract_core.cache.eviction.evict", lambda _, most: looks.append(most))
    cache = Cache(str(tmp_path), most=1600 * BLOCK)
    some(cache, 350)
    assert looks == [1500 * BLOCK] * 4  # at first, and whenever a sixteenth was added


def test_times_of_the_future_tell_nothing(tmp_path: Path) -> None:
    """The clock was set back. What is used sets its time right."""
    cache = Cache(str(tmp_path))
    keys = some(cache, 3)
    for key in keys[1:]:
        os.utime(tmp_path / key.file, (time.time() + 1e7,) * 2)
    assert cache.get(keys[2]) is not None
    with trusted_folder(tmp_path) as folder:
        assert [one.name for one in evict(folder, 2 * BLOCK)] == [keys[1].file]
        assert [one.name for one in evict(folder, BLOCK)] == [keys[0].file]
        assert evict(folder, BLOCK) == []


@needs_owners
def test_what_a_killed_process_left_is_gone_with_the_next_kernel(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from tract_core.cache.cache import Cache, Key
os.replace = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
Cache(Path(sys.argv[1])).put(Key("0" * 40, True), b"code")
"""
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], env=paths, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".new-")
    (tmp_path / ".new-1-of-another-user").write_text("")
    assert Cache(str(tmp_path)).put(KEY, b"code")
    assert sorted(os.listdir(tmp_path)) == [".new-1-of-another-user", KEY.file]


@pytest.mark.parametrize(
    ("named", "bytes_"),
    [
        ("", MOST_BYTES),
        ("0", 0),
        ("12345", 12345),
        ("1e9", 10**9),
        ("500M", 500 * 10**6),
        ("1.5G", 1500 * 10**6),
        ("64KiB", 64 << 10),
        ("2 GB", 2 * 10**9),
        ("1Ti", 1 << 40),
    ],
)
def test_sizes(monkeypatch: pytest.MonkeyPatch, named: str, bytes_: int) -> None:
    monkeypatch.setenv("TRACT_CACHE_SIZE", named)
    assert named_size() == bytes_


@pytest.mark.parametrize("named", ["-1", "much", "1X", "1e999", "nan", "inf", "1 2", "0x10", "\u0661M", "i"])
def test_what_is_no_size(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("TRACT_CACHE_SIZE", named)
    with pytest.raises(InputError, match=r"TRACT_CACHE_SIZE is .*, wanted a number of bytes, as 500M, 2GiB or 1e9"):
        cache_here()


@needs_owners
def test_the_folder_is_made_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "caches" / "tract"
    assert Cache.at(folder) == Cache(str(folder))
    assert folder.stat().st_mode & 0o777 == 0o700


@needs_owners
@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777], ids=oct)
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, mode: int) -> None:
    """Neither is one that they could exchange."""
    folder = tmp_path / "caches" / "tract"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    with pytest.warns(CacheWarning, match=rf"not kept: others may write to '{folder}'.*chmod go-w"):
        assert Cache.at(folder) == Cache(None)
    folder.chmod(0o700)
    folder.parent.chmod(mode & 0o777)
    with pytest.warns(CacheWarning, match=rf"others may write to '{folder.parent}'"):
        assert Cache.at(folder) == Cache(None)
    folder.parent.chmod(mode | 0o1000)  # where nobody moves what belongs to others, as in /tmp
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Cache.at(folder) == Cache(str(folder))


@needs_owners
def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    if os.stat(tmp_path).st_uid == 0:  # who is root can do anything, so what belongs to root is as safe as can be
        os.chown(tmp_path, 12345, -1)
    with pytest.warns(CacheWarning, match="others may write"):
        assert Cache.at(tmp_path) == Cache(None)


def test_what_only_this_process_can_tell_is_not_kept(tmp_path: Path) -> None:
    key = key_of(f"a kernel {ONLY_HERE}3", ISAS[0], "sources")
    cache = Cache(str(tmp_path))
    cache.put(key, b"code")
    assert cache.get(key) is None
    assert list(tmp_path.iterdir()) == []
