"""The cache of object code: kept between processes, and left out whenever anything is unusual."""

from __future__ import annotations

from pathlib import Path

import pytest
from tract_cpu.isa import ISAS
from tract_cpu.native.cache import Cache, key_of

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
    assert Cache.of_environment() == Cache(None)


def test_the_environment_moves_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRACT_CACHE", str(tmp_path))
    assert Cache.of_environment() == Cache(tmp_path / "tract-cpu")


def test_the_key_depends_on_everything() -> None:
    keys = {key_of(text, isa, sources) for text in ("a", "b") for isa in ISAS[:2] for sources in ("c", "d")}
    assert len(keys) == 8
