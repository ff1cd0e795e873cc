"""``tract cache``: what is kept, where, what is not used and why, and how to be rid of it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tract_core.cache.cache import SIZE_VARIABLE, VARIABLE, Cache, Key
from tract_core.cache.entries import ENDING, PLAN
from tract_core.cli.frame import app

Call = Callable[..., Result]

DAY = 86400


def tract(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def told(*arguments: object) -> Any:
    result = tract(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of the cache, which is not there yet."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "caches"))
    monkeypatch.delenv(SIZE_VARIABLE, raising=False)
    return tmp_path / "caches" / "tract"


@pytest.fixture
def three(folder: Path) -> list[Path]:
    """Kernels that were used now and two days ago, a model ten days ago; and a write that was killed."""
    files: list[Path] = []
    for days in (0, 2, 10):
        key = Key(f"{days:040x}", True, PLAN if days == 10 else ENDING)
        kept = Cache(str(folder))
        assert kept.put_parts(key, [bytes(5000)]) if days == 10 else kept.put(key, bytes(5000))
        files.append(folder / key.file)
        os.utime(files[-1], (time.time() - days * DAY - days,) * 2)
    (folder / ".new-5-x").write_text("")
    os.utime(folder / ".new-5-x", (time.time() - DAY,) * 2)
    return files


def test_nothing_is_made_by_looking(folder: Path) -> None:
    assert f"{folder} (not there yet)" in tract("cache").stdout
    assert tract("cache", "clear").stdout == "removed 0 files, 0 bytes\n"
    assert told("cache")["is_there"] is False
    assert not folder.parent.exists()


def test_what_is_kept(folder: Path, three: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SIZE_VARIABLE, "2M")
    rows = [line.split(maxsplit=1) for line in tract("cache").stdout.splitlines()]
    assert rows[:3] == [["folder", str(folder)], ["kernels", "2"], ["models", "1"]]
    assert rows[3] == ["size", "24.6 kB of 2.0 MB"]
    assert rows[4][0] == "last"
    assert rows[5] == ["unused", "longest  10 days ago"]
    assert rows[6] == ["unfinished", "1, to be removed"]
    found = told("cache")
    assert {
        key: found[key] for key in ("folder", "is_there", "problem", "kernels", "plans", "bytes", "most_bytes")
    } == {
        "folder": str(folder),
        "is_there": True,
        "problem": None,
        "kernels": 2,
        "plans": 1,
        "bytes": 3 * 8192,
        "most_bytes": 2_000_000,
    }
    assert (found["unfinished"], found["not_used"]) == (1, [])
    assert found["used_last"] == pytest.approx(three[0].stat().st_mtime)
    assert found["used_first"] == pytest.approx(three[-1].stat().st_mtime)


def test_what_was_not_used_for_long_is_removed(folder: Path, three: list[Path]) -> None:
    (folder / "of somebody else").write_text("")
    assert tract("cache", "clear", "--unused-for", 2).stdout == "removed 2 files, 16.4 kB\n"
    assert sorted(folder.iterdir()) == sorted([three[0], folder / "of somebody else"])
    assert told("cache", "clear") == {"folder": str(folder), "removed": 1, "removed_bytes": 8192}
    assert list(folder.iterdir()) == [folder / "of somebody else"]
    assert tract("cache", "clear", "--unused-for", -1).exit_code == 2


def test_a_clock_that_was_set_back(three: list[Path]) -> None:
    os.utime(three[0], (time.time() + DAY,) * 2)
    assert "not known, as the clock was set back" in tract("cache").stdout


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners of this kind here")
def test_what_others_may_have_written_is_listed_and_stays(folder: Path, three: list[Path]) -> None:
    three[0].chmod(0o666)
    os.mkfifo(folder / "pipe\x1b[31m")
    shown = tract("cache").stdout
    assert f"not used: {three[0]}: its mode is 0666\n" in shown
    assert "pipe\\u001b[31m: it is a pipe\n" in shown
    assert "remove it yourself" in shown
    assert {one["problem"] for one in told("cache")["not_used"]} == {"its mode is 0666", "it is a pipe"}
    assert told("cache", "clear")["removed"] == 2
    assert sorted(path.name for path in folder.iterdir()) == sorted([three[0].name, "pipe\x1b[31m"])


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners of this kind here")
def test_a_folder_that_is_open_to_others(folder: Path, three: list[Path]) -> None:
    folder.parent.chmod(0o777)
    assert tract("cache").stdout == f"nothing is kept: others may write to {folder.parent}: its mode is 0777\n"
    assert told("cache")["problem"] == f"others may write to {folder.parent}: its mode is 0777"
    result = tract("cache", "clear")
    assert result.exit_code == 1
    assert f"Error: {folder.parent}: its mode is 0777\n  hint: " in result.stderr
    assert "chmod go-w" in result.stderr
    assert all(path.exists() for path in three)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system has no folder in which nobody can write")
def test_where_nothing_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.parent.write_text("no folder")
    assert tract("cache").stdout == f"nothing is kept: {folder}: Not a directory\n"
    monkeypatch.setenv(VARIABLE, "/proc/self/tract")
    assert tract("cache").stdout == "nothing is kept: /proc/self cannot be written to\n"
    monkeypatch.setenv(VARIABLE, "0")
    assert tract("cache").stdout == "nothing is kept: TRACT_CACHE says so\n"
    assert told("cache")["folder"] is None
    assert told("cache", "clear") == {"folder": None, "removed": 0, "removed_bytes": 0}


def test_a_size_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SIZE_VARIABLE, "much")
    result = tract("cache")
    assert result.exit_code == 1
    assert "TRACT_CACHE_SIZE is 'much', wanted a number of bytes" in result.stderr
