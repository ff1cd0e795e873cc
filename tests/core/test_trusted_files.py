"""Files that are as good as our own: what others may have written, or could exchange, is told from them."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tract_core.trusted_files import Distrusted, is_abandoned, resolved, trusted_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners of this kind here")


@pytest.fixture(autouse=True)
def _usual_folders() -> Iterator[None]:
    """Folders that tests make are their user's alone to write to, whatever is usual on this machine."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def read(folder: Path, name: str = "file") -> bytes:
    with trusted_folder(folder) as found, found.file(name) as (descriptor, status):
        return os.read(descriptor, status.st_size)


def written(folder: Path, content: bytes = b"ours") -> Path:
    with trusted_folder(folder, make=True) as found:
        found.write("file", [content[:2], content[2:]])
    return folder / "file"


def test_what_is_written_is_there_whole_and_the_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = written(tmp_path / "some" / "folder")
    finally:
        os.umask(before)
    assert read(file.parent) == b"ours"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, file.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]
    written(file.parent, b"other")
    assert read(file.parent) == b"other"
    assert os.listdir(file.parent) == ["file"]


def test_a_folder_is_only_made_where_that_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), trusted_folder(tmp_path / "none"):
        pass
    assert resolved(tmp_path / "none" / "below") == str(tmp_path / "none" / "below")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777, 0o2775], ids=oct)
def test_no_folder_is_used_that_others_may_write_to_and_nothing_is_made_in_one(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open" / "below"
    written(folder)
    folder.chmod(mode)
    with pytest.raises(Distrusted, match=f"{folder}: its mode is {mode:04o}"), trusted_folder(folder):
        pass
    folder.chmod(0o755)
    assert read(folder) == b"ours"
    folder.parent.chmod(mode & 0o777)
    with pytest.raises(Distrusted, match=f"{folder.parent}: its mode"), trusted_folder(folder):
        pass
    with pytest.raises(Distrusted), trusted_folder(folder.parent / "new", make=True):
        pass
    assert not (folder.parent / "new").exists()
    folder.parent.chmod(mode | 0o1000)  # as /tmp is, where nobody moves what belongs to others
    assert read(folder) == b"ours"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listener(path: Path) -> None:
    os.chdir(path.parent)  # such names are short
    socket.socket(socket.AF_UNIX).bind(path.name)


def link(path: Path) -> None:
    (path.parent / "target").write_bytes(b"theirs")
    path.symlink_to("target")


def second_name(path: Path) -> None:
    (path.parent / "first").write_bytes(b"theirs")
    path.hardlink_to(path.parent / "first")


def open_to_others(path: Path) -> None:
    path.write_bytes(b"theirs")
    path.chmod(0o620)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (pipe, "it is a pipe"),
    "socket": (listener, "it is a socket"),
    "link": (link, "it is a link"),
    "link that leads nowhere": (lambda path: path.symlink_to("nowhere"), "it is a link"),
    "hard link": (second_name, r"it has 2 names \(hard links\)"),
    "folder": (Path.mkdir, "it is a folder"),
    "open to others": (open_to_others, "its mode is 0620"),
}


@pytest.mark.parametrize(("plant", "why"), WRONG.values(), ids=WRONG.keys())
def test_what_is_no_file_of_ours_is_not_read_nor_waited_for_nor_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path], object], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    plant(tmp_path / "file")
    before = os.lstat(tmp_path / "file")
    for act in (read, written):
        with pytest.raises(Distrusted, match=f"{tmp_path}/file: {why}"):
            act(tmp_path)
    assert os.path.samestat(before, os.lstat(tmp_path / "file"))
    assert [path for path in os.listdir(tmp_path) if path.startswith(".new")] == []


def test_links_of_the_users_own_are_followed_and_the_path_has_none(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "real" / "inner").chmod(0o700)
    (tmp_path / "absolute").symlink_to(tmp_path / "real")
    (tmp_path / "relative").symlink_to("real/../absolute/inner")
    (tmp_path / "real" / "inner" / "up").symlink_to("..")
    for way in ("absolute/inner", "relative", "real/inner/up/inner", "absolute/../real/inner"):
        assert resolved(tmp_path / way) == str(tmp_path / "real" / "inner")
    assert resolved(Path("/..") / tmp_path.relative_to("/")) == str(tmp_path)
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="symbolic links"):
        resolved(tmp_path / "round")
    (tmp_path / "dangling").symlink_to("made/later")
    assert written(tmp_path / "dangling").read_bytes() == b"ours"
    assert (tmp_path / "made" / "later" / "file").read_bytes() == b"ours"


def test_a_file_in_the_place_of_a_folder_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for below in ("file", "file/below"):
        with pytest.raises(NotADirectoryError), trusted_folder(tmp_path / below, make=True):
            pass


def test_a_folder_that_is_only_passed_need_not_be_readable(tmp_path: Path) -> None:
    """As the folder of all homes on some machines."""
    file = written(tmp_path / "homes" / "mine")
    (tmp_path / "homes").chmod(0o711)
    assert read(file.parent) == b"ours"


def test_all_that_is_in_a_folder_is_told_with_what_is_wrong(tmp_path: Path) -> None:
    written(tmp_path)
    pipe(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with trusted_folder(tmp_path) as folder:
        assert {name: why and why.problem for name, _, why in folder.files()} == {"file": None, "pipe": "it is a pipe"}


def test_what_somebody_is_writing_is_told_from_what_nobody_will_finish(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / "file").write_text("")
    status, now = os.stat(tmp_path / "file"), time.time()

    def told(name: str, passed: float = 0.0) -> bool:
        return is_abandoned(name, status, now + passed, 3600)

    assert told(f".new-{ended.pid}-abc")
    assert not told(f".new-{os.getpid()}-abc")
    assert not told(".new-1-abc")  # of another user
    assert told(f".new-{os.getpid()}-abc", 3700)  # it has ended since, and another one has its number
    assert told(f".new-{os.getpid()}-abc", -3700)  # the clock was set back
    assert not told(".new-of-somebody-else")
    assert told(f".new-{10**30}-abc")
    assert not told(f"{ended.pid}.o", 3700)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space"):
        written(tmp_path, b"more")
    assert os.listdir(tmp_path) == ["file"]
    assert file.read_bytes() == b"ours"
