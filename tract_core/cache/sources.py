"""The digest of the Python files of a distribution, which is part of the keys of code that they write.

To read some hundred files takes as long as to load a small model. So the digest is kept, under a key of what the
system says of the files: which ones they are, how large, and when they were changed by whatever means. None is opened
for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from time import time
from typing import Final

from tract_core.cache.cache import ONLY_HERE, Key, cache_here
from tract_core.digests import blake2b, digest_of

NUMBERS: Final = count()
"""For whatever only this process can tell from everything else."""

_BEGIN: Final = time()


@cache
def digest_of_sources(path: str | os.PathLike[str]) -> str:
    """What changes when a Python file does, or one in a folder or below it.

    Where one is younger than this process, nobody can tell whether it is what was imported.
    """
    try:
        files = sorted(files_at(os.fspath(path), ".py"))
        if not are_settled(files):
            return f"{ONLY_HERE}{next(NUMBERS)}"
        key = Key(_digest_of_listing(path, files), True)
        kept = cache_here().get(key)
        if kept is None:
            kept = _digest_of_contents(path, files).encode()
            cache_here().put(key, kept)
    except OSError:  # as of modules in an archive
        return f"{ONLY_HERE}{next(NUMBERS)}"
    return kept.decode()


Files = Sequence[tuple[str, os.stat_result]]
"""Paths, and what the system says of the files there."""


def are_settled(files: Files) -> bool:
    """Whether all are older than this process, and so what it has imported or will import.

    An installer may link a file that is older than what it replaces, so that both times count.
    """
    return all(max(found.st_mtime, found.st_ctime) < _BEGIN for _, found in files)


def files_at(place: str, *endings: str) -> Iterator[tuple[str, os.stat_result]]:
    """A file; or the files of a folder, and below it, whose names end so, but for what Python compiles itself."""
    if not os.path.isdir(place):
        yield place, os.stat(place)
        return
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name.endswith(endings):
                yield entry.path, entry.stat()
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from files_at(entry.path, *endings)


def _digest_of_listing(path: str | os.PathLike[str], files: Files) -> str:
    listed = [
        (file, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_dev, found.st_ino) for file, found in files
    ]
    return digest_of(f"sources {os.fspath(path)}: {listed}")


def _digest_of_contents(path: str | os.PathLike[str], files: Files) -> str:
    from pathlib import Path

    state = blake2b(digest_size=16)
    for file, _ in files:
        content = Path(file).read_bytes()
        state.update(f"{Path(file).relative_to(path)}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
    return state.hexdigest()
