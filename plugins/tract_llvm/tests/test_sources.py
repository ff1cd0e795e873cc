"""The digest of sources: as good as reading them all, without reading them all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tract_core.cache import sources
from tract_core.cache.cache import ONLY_HERE, VARIABLE
from tract_core.cache.sources import digest_of_sources


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources that are taken for older than this process, and a cache of their own."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(sources, "_BEGIN", 1e12)
    folder = tmp_path / "package"
    (folder / "inner").mkdir(parents=True)
    (folder / "one.py").write_text("ONE = 1")
    (folder / "inner" / "two.py").write_text("TWO = 2")
    (folder / "data.txt").write_text("3")
    return folder


def digest(path: Path) -> str:
    """As a process finds it that has not asked yet."""
    digest_of_sources.cache_clear()
    return digest_of_sources(path)


def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that are read from now on."""
    found: list[str] = []
    original = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        found.extend([path.name] if path.suffix == ".py" else [])
        return original(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    return found


def test_sources_are_read_once(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = read(monkeypatch)
    first = digest(package)
    assert files == ["two.py", "one.py"]
    assert digest(package) == first
    assert files == ["two.py", "one.py"]
    assert ONLY_HERE not in first
    (package / "data.txt").write_text("4")
    assert digest(package) == first


def test_a_change_that_keeps_size_and_time_is_seen(package: Path) -> None:
    first, file = digest(package), package / "inner" / "two.py"
    before = file.stat()
    file.write_text("TWO = 3")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = digest(package)
    assert second != first
    beside = package / "new"
    beside.write_text("TWO = 2")
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(beside, file)
    assert digest(package) == first
    os.rename(file, package / "two.py")
    assert digest(package) not in {first, second}


def test_what_is_younger_than_the_process_is_told_from_everything_else(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_BEGIN", 0)
    first = digest(package)
    assert ONLY_HERE in first
    assert digest(package) != first


def test_one_file_is_told_by_its_content(package: Path) -> None:
    assert digest(package / "one.py") != digest(package / "inner" / "two.py")
    assert ONLY_HERE in digest(package / "none.py")
