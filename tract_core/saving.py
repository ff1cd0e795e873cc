"""Files and folders are written whole or not at all. Files take the place of regular files, folders of nothing."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Final

from tract_core.errors import InputError, TractError

_unfinished: Final[set[Path]] = set()

_KINDS: Final = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


_OPEN: Final = "Windows replaces no file that is open, as a model's is as long as the model is there: take another name"


@contextmanager
def whole_file(path: str | Path) -> Generator[IO[bytes]]:
    """A binary file to write to, which is found at ``path`` once the block has ended, and nowhere when it raises.

    What is written lies beside it until then, under another name. A file that is there already is replaced, and its
    permissions stay. Raises InputError where ``path`` leads to anything but a regular file (also to a link, whatever is
    behind it), and where it cannot be written.
    """
    target = Path(path)
    unfinished = target.parent / f".{os.urandom(8).hex()}.unfinished"
    try:
        with _written(target):
            mode = _mode_of(target)
            _unfinished.add(unfinished)
            with unfinished.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if mode is not None:
                unfinished.chmod(mode)
            _mode_of(target)
            unfinished.replace(target)
    finally:
        with suppress(OSError):
            unfinished.unlink()
        _unfinished.discard(unfinished)


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Generator[Path]:
    """A folder to write to, which is found at ``path`` once the block has ended, and nowhere when it raises.

    Raises InputError where something is at ``path`` already, and where it cannot be written.
    """
    target = Path(path)
    unfinished = target.parent / f".{os.urandom(8).hex()}.unfinished"
    try:
        with _written(target):
            _check_nothing_at(target)
            _unfinished.add(unfinished)
            unfinished.mkdir()
            yield unfinished
            _check_nothing_at(target)
            unfinished.rename(target)
    finally:
        _remove_folder(unfinished)
        _unfinished.discard(unfinished)


@contextmanager
def whole_files(path: str | os.PathLike[str]) -> Generator[Path]:
    """A folder to write files to, which are found in the folder ``path`` once the block has ended; none when it raises.

    ``path`` is there before. Files in it of the same names are replaced, the others stay. Raises InputError where
    ``path`` is no folder, where the name of a file leads to anything but a regular one, and where it cannot be written.
    """
    target = Path(path)
    if not target.is_dir():
        raise InputError("there is no such folder", where=str(target), hint="make it first, or name one that is there")
    unfinished = target / f".{os.urandom(8).hex()}.unfinished"
    try:
        with _written(target):
            _unfinished.add(unfinished)
            unfinished.mkdir()
            yield unfinished
            found = sorted(unfinished.iterdir())
            for file in found:
                _mode_of(target / file.name)
            for file in found:
                file.replace(target / file.name)
    finally:
        _remove_folder(unfinished)
        _unfinished.discard(unfinished)


_MOVED_SOON: Final[ContextVar[bool]] = ContextVar("moved soon", default=False)


def is_moved_soon() -> bool:
    """Whether what is read now gets another name before long: on Windows, nobody may have it open then."""
    return _MOVED_SOON.get()


@contextmanager
def tried_first(path: str | os.PathLike[str]) -> Generator[Path]:
    """A path to write a file or a folder to, which is found at ``path`` once the block has ended without an error.

    It ends as ``path`` does, and may be read in the block, where `is_moved_soon`; errors of the block name ``path`` in
    its place. Raises InputError as `whole_file` and `whole_folder` do, before the block too.
    """
    target = Path(path)
    unfinished = target.parent / f".{os.urandom(8).hex()}.unfinished"
    with _written(target):
        _mode_of(target)
        _unfinished.add(unfinished)
        unfinished.mkdir()
    token = _MOVED_SOON.set(True)
    try:
        found = unfinished / target.name
        yield found
        with _written(target):
            mode = _mode_of(target)
            if mode is not None and found.is_file():
                found.chmod(mode)
            elif mode is not None:
                _check_nothing_at(target)
            found.replace(target)
    except TractError as error:
        error.where = error.where and error.where.replace(str(unfinished / target.name), str(path))
        raise
    finally:
        _MOVED_SOON.reset(token)
        _remove_folder(unfinished)
        _unfinished.discard(unfinished)


@contextmanager
def _written(target: Path) -> Generator[None]:
    """Errors of the system say that ``target`` cannot be written."""
    try:
        yield
    except OSError as error:
        is_open = isinstance(error, PermissionError) and target.exists()
        hint = _OPEN if is_open and sys.platform == "win32" else None
        if not os.path.isdir(target.parent):
            hint = f"there is no folder {str(target.parent)!r}"
        raise InputError(f"it cannot be written: {error.strerror or error}", where=str(target), hint=hint) from None


def discard_unfinished() -> None:
    """Remove what is being written, before the process ends at once."""
    for path in tuple(_unfinished):
        _remove_folder(path)
        with suppress(OSError):
            path.unlink()


def _remove_folder(path: Path) -> None:
    if path.is_dir():
        from shutil import rmtree

        rmtree(path, ignore_errors=True)


def _check_nothing_at(target: Path) -> None:
    if os.path.lexists(target):
        raise InputError(
            "it is there already, and a folder is never written over", where=str(target), hint="name one that is not"
        )


def _mode_of(target: Path) -> int | None:
    """The permissions of the file that is there; ``None`` where nothing is. Raises InputError where it is no file."""
    try:
        found = target.lstat().st_mode
    except FileNotFoundError:
        return None
    except ValueError as error:  # of a name with a zero in it
        raise InputError(f"it is no path: {error}", where=repr(str(target))) from None
    if not stat.S_ISREG(found):
        raise InputError(
            f"it is {kind_of(found)}, which is not written over",
            where=str(target),
            hint="name a file that is not there yet, or a regular one",
        )
    return stat.S_IMODE(found)


def kind_of(mode: int) -> str:
    """In words, what there is in the place of a regular file. ``mode``: as `os.stat` tells it."""
    return _KINDS.get(stat.S_IFMT(mode), "no regular file")
