"""The cache of object code: kept between processes, and left out whenever anything is unusual."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from tract_cpu.isa import ISAS
from tract_cpu.native.cache import ONLY_HERE, Cache, CacheWarning, key_of, named_folder

KEY = key_of("a kernel", ISAS[0], "sources")


def test_what_was_put_is_there(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "new" / "folder")
    assert cache.get(KEY) is None
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"


@pytest.mark.parametrize("damage", [slice(None, -1), slice(0), slice(5, None)], ids=["cut off", "empty", "moved"])
def test_a_damaged_file_is_not_used_and_is_replaced(tmp_path: Path, damage: slice) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, b"code")
    (file,) = tmp_path.rglob("*.o")
    file.write_bytes(file.read_bytes()[damage])
    assert cache.get(KEY) is None
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = Cache(tmp_path / "file")
    cache.put(KEY, b"code")
    assert cache.get(KEY) is None


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    Cache(tmp_path).put(KEY, b"code")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("named", ["", "0"])
def test_the_environment_turns_it_off(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("TRACT_CACHE", named)
    assert named_folder() is None


def test_the_environment_moves_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRACT_CACHE", str(tmp_path))
    assert named_folder() == tmp_path / "tract-cpu"


def test_the_key_depends_on_everything() -> None:
    keys = {key_of(text, isa, sources) for text in ("a", "b") for isa in ISAS[:2] for sources in ("c", "d")}
    assert len(keys) == 8


needs_owners = pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no owners of this kind")


@needs_owners
def test_the_folder_is_made_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "caches" / "tract-cpu"
    assert Cache.at(folder) == Cache(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


@needs_owners
@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777], ids=oct)
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, mode: int) -> None:
    """Neither is one that they could exchange."""
    folder = tmp_path / "caches" / "tract-cpu"
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
        assert Cache.at(folder) == Cache(folder)


@needs_owners
def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1)
    if os.stat(tmp_path).st_uid == 0:  # who is root can do anything, so what belongs to root is as safe as can be
        os.chown(tmp_path, 12345, -1)
    with pytest.warns(CacheWarning, match="others may write"):
        assert Cache.at(tmp_path) == Cache(None)


def test_what_only_this_process_can_tell_is_not_kept(tmp_path: Path) -> None:
    key = key_of(f"a kernel {ONLY_HERE}3", ISAS[0], "sources")
    cache = Cache(tmp_path)
    cache.put(key, b"code")
    assert cache.get(key) is None
    assert list(tmp_path.iterdir()) == []
