"""Files are opened below a folder without being led astray; the plugins test what their formats ask for."""

from __future__ import annotations

import os
from mmap import mmap
from pathlib import Path, PurePath

import pytest

from tract_core.errors import CorruptModel, LimitExceeded, ModelError, UnsafePath
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.safe_files import map_path, noting_files, plain_file_below, resolve_below


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = (tmp_path / "inside").resolve()
    (inside / "below").mkdir(parents=True)
    (inside / "below" / "f").write_bytes(b"content")
    (tmp_path / "secret").write_bytes(b"secret")
    return inside


def content(folders: list[Path], location: str) -> bytes:
    folder, path = resolve_below(folders, location)
    with plain_file_below(folder, path, location) as (descriptor, status):
        return os.read(descriptor, status.st_size)


def test_files_below_and_links_that_stay_there(folder: Path) -> None:
    (folder / "link").symlink_to("below/f")
    (folder / "to").symlink_to("below")
    for location in ("below/f", "link", "to/f"):
        assert content([folder], location) == b"content"
    assert resolve_below([folder], "to/f") == (folder, PurePath("below/f"))


@pytest.mark.parametrize("location", ["../secret", "below/../../secret", "/etc/passwd", "out", "up/secret"])
def test_what_leads_out(folder: Path, location: str) -> None:
    (folder / "out").symlink_to("../secret")
    (folder / "up").symlink_to("..")
    with pytest.raises(UnsafePath, match="leads out of the model's folder"):
        resolve_below([folder], location)


def test_a_second_folder_of_the_model(folder: Path, tmp_path: Path) -> None:
    (folder / "out").symlink_to("../secret")
    assert content([folder, tmp_path.resolve()], "out") == b"secret"


def test_a_link_that_is_put_there_later_is_not_followed(folder: Path) -> None:
    found, path = resolve_below([folder], "below/f")
    (folder / "below" / "f").unlink()
    (folder / "below" / "f").symlink_to("../../secret")
    with pytest.raises(OSError, match="symbolic links"), plain_file_below(found, path, "below/f"):
        pass


def test_what_is_noted_inside_is_noted_outside_too(folder: Path, tmp_path: Path) -> None:
    with noting_files() as outer:
        map_path(folder / "below" / "f", DEFAULT_LIMITS)
        with noting_files() as inner:
            map_path(tmp_path / "secret", DEFAULT_LIMITS)
        map_path(tmp_path / "secret", DEFAULT_LIMITS)
    map_path(folder / "below" / "f", DEFAULT_LIMITS)
    assert sorted(outer.values()) == [6, 7]
    assert list(inner.values()) == [6]


def test_what_is_mapped(folder: Path) -> None:
    assert isinstance(map_path(folder / "below" / "f", DEFAULT_LIMITS), mmap)
    (folder / "empty").touch()
    os.mkfifo(folder / "pipe")
    with pytest.raises(CorruptModel, match="the file is empty"):
        map_path(folder / "empty", DEFAULT_LIMITS)
    for name, message in (("pipe", "not a plain file"), ("below", "it is a folder"), ("no", "it cannot be read")):
        with pytest.raises(ModelError, match=message):
            map_path(folder / name, DEFAULT_LIMITS)
    with pytest.raises(LimitExceeded, match="the file has 7 bytes, 6 are allowed"):
        map_path(folder / "below" / "f", LoadLimits(max_bytes=6))
