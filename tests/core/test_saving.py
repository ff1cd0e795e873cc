"""Writers replace regular files only, and make folders, whole or not at all."""

from __future__ import annotations

import errno
import os
import socket
import sys
from contextlib import suppress
from mmap import mmap
from pathlib import Path

import pytest

from tract_core.errors import InputError
from tract_core.limits import LoadLimits
from tract_core.safe_files import map_path
from tract_core.saving import discard_unfinished, tried_first, whole_file, whole_files, whole_folder


def write(path: Path, content: bytes = b"new") -> None:
    with whole_file(path) as file:
        file.write(content)


def test_a_new_file_and_one_in_place_of_another(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write(path, b"old")
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()
    path.chmod(0o640)
    write(path)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["f"]


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for before in (None, b"old"):
        if before is not None:
            path.write_bytes(before)
        with pytest.raises(KeyboardInterrupt):
            interrupted(path)
        assert [one.read_bytes() for one in tmp_path.iterdir()] == ([] if before is None else [before])


def interrupted(path: Path) -> None:
    with whole_file(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


def test_what_is_no_regular_file_stays(tmp_path: Path) -> None:
    """Whatever it leads to: as root, a rename would put a file in place of /dev/null."""
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("absent")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        kinds = {"link": "a link", "dangling": "a link", "loop": "a link", "folder": "a folder", "pipe": "a pipe"}
        before = sorted(os.listdir(tmp_path))
        for path, kind in {**kinds, "socket": "a socket", "/dev/null": "a device"}.items():
            with pytest.raises(InputError, match=f"{path}: it is {kind}, which is not written over") as caught:
                write(tmp_path / path)
            assert caught.value.hint
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "file").read_bytes() == b"old"
    assert not Path("/dev/null").is_file()


def test_a_link_that_is_put_there_meanwhile(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is a link"), whole_file(tmp_path / "f"):
        (tmp_path / "f").symlink_to("absent")
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("path", ["absent/f", "file/f", "x" * 300, ""])
def test_places_where_no_file_can_be(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"it cannot be written|it is a folder"):
        write(tmp_path / path)
    assert os.listdir(tmp_path) == ["file"]


def test_a_process_that_ends_at_once_leaves_nothing(tmp_path: Path) -> None:
    writing = whole_file(tmp_path / "f")
    writing.__enter__().write(b"half")
    discard_unfinished()
    assert os.listdir(tmp_path) == []
    with pytest.raises(InputError, match="it cannot be written"):
        writing.__exit__(None, None, None)


def test_a_folder_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "made") as folder:
        (folder / "f").touch()
        assert not (tmp_path / "made").exists()
    assert os.listdir(tmp_path) == ["made"]
    assert os.listdir(tmp_path / "made") == ["f"]
    with pytest.raises(KeyboardInterrupt):
        interrupted_folder(tmp_path / "half")
    assert os.listdir(tmp_path) == ["made"]


def interrupted_folder(path: Path) -> None:
    with whole_folder(path) as folder:
        (folder / "f").touch()
        raise KeyboardInterrupt


def overtaken_folder(path: Path) -> None:
    with whole_folder(path) as folder:
        (folder / "mine").touch()
        path.mkdir()


def test_a_folder_takes_the_place_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "dangling").symlink_to("nothing")
    for name in ("there", "dangling"):
        with pytest.raises(InputError, match="it is there already"), whole_folder(tmp_path / name):
            pass
    with pytest.raises(InputError, match="it is there already"):
        overtaken_folder(tmp_path / "late")
    assert sorted(os.listdir(tmp_path)) == ["dangling", "late", "there"]
    assert os.listdir(tmp_path / "late") == []


def test_an_unfinished_folder_is_discarded(tmp_path: Path) -> None:
    writing = whole_folder(tmp_path / "f")
    (writing.__enter__() / "half").touch()
    discard_unfinished()
    assert os.listdir(tmp_path) == []
    with pytest.raises(InputError, match="it cannot be written"):
        writing.__exit__(None, None, None)


def tried(path: Path, *, folder: bool = False) -> None:
    with tried_first(path) as found:
        assert found.name == path.name
        assert not path.exists() or path.read_bytes() == b"old"
        if folder:
            found.mkdir()
        (found / "inner" if folder else found).write_bytes(b"new")


def test_what_was_tried_takes_the_place_of_a_file_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "f.tar"
    tried(path)
    path.write_bytes(b"old")
    path.chmod(0o640)
    tried(path)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)
    tried(tmp_path / "folder", folder=True)
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["f.tar", "folder", "inner"]


def test_what_was_tried_and_failed_leaves_no_trace(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), tried_first(tmp_path / "f") as found:
        found.write_bytes(b"new")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError), tried_first(tmp_path / "f"):
        (tmp_path / "absent").read_bytes()  # an error of the block is not about the path


def test_a_folder_is_refused_before_anything_is_tried(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path, problem in [("folder", "it is a folder"), ("absent/f", "it cannot be written")]:
        with pytest.raises(InputError, match=problem), tried_first(tmp_path / path):
            pytest.fail("the block was entered")


def test_a_file_that_is_there_is_not_replaced_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(InputError, match="it is there already"):
        tried(tmp_path / "f", folder=True)
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("writing", [whole_file, whole_folder, tried_first])
def test_a_folder_that_is_not_there_is_named(writing, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught, writing(tmp_path / "nowhere" / "f"):
        pass
    assert caught.value.hint == f"there is no folder '{tmp_path / 'nowhere'}'"


def test_errors_name_the_path_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught, tried_first(tmp_path / "f") as path, whole_file(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.where == str(tmp_path / "f")


def test_files_are_found_together(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    (tmp_path / "c").write_text("stays")
    with whole_files(tmp_path) as folder:
        (folder / "a").write_text("after")
        (folder / "b").write_text("new")
        assert not (tmp_path / "b").exists()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "after", "b": "new", "c": "stays"}


def test_files_that_cannot_all_be_there_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    writing = whole_files(tmp_path)
    folder = writing.__enter__()
    for name in ("a", "b"):
        (folder / name).write_text(name)
    with pytest.raises(InputError, match="it is a folder"):
        writing.__exit__(None, None, None)
    with pytest.raises(InputError, match="there is no such folder"):
        whole_files(tmp_path / "c").__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_on_windows_what_is_moved_soon_is_not_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is mapped keeps its name there."""
    monkeypatch.setattr(sys, "platform", "win32")
    with tried_first(tmp_path / "f") as path:
        path.write_bytes(b"content")
        assert type(map_path(path, LoadLimits())) is bytes
    assert type(map_path(tmp_path / "f", LoadLimits())) is mmap


def test_on_windows_an_open_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(self: Path, target: Path) -> None:
        raise PermissionError(errno.EACCES, "Access is denied")

    write(tmp_path / "f", b"old")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(InputError, match="Access is denied") as error:
        write(tmp_path / "f")
    assert error.value.hint == (
        "Windows replaces no file that is open, as a model's is as long as the model is there: take another name"
    )
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]
