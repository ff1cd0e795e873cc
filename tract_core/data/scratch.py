"""Large values in files of a folder, for whoever has more room there than in memory."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import numpy as np

from tract_core.data.stored import Array, let_go, mapped_around

LARGE: Final = 1 << 20
"""From how many bytes on a value is put into a file. Each takes a descriptor, of which a process has 1024."""

MOST: Final = 400
"""How many files there are at most; further values stay in memory."""


class _Folder:
    def __init__(self, path: Path) -> None:
        self.path, self.left = path, MOST


_FOLDER: Final[ContextVar[_Folder | None]] = ContextVar("folder", default=None)


@contextmanager
def large_values_in(folder: Path) -> Generator[None]:
    """Inside, what rules compute of constants is put into files of a folder, where it is large.

    The files have no names, and are gone with what uses them. So a runtime that packs weights can let go of what they
    were packed from (`tract_core.data.stored.let_go`), as it does with those of a file that is mapped.
    """
    token = _FOLDER.set(_Folder(folder))
    try:
        yield
    finally:
        _FOLDER.reset(token)


def computed_of(sources: Iterable[Array], array: Array) -> Array:
    """What was computed of ``sources``: in a file where that was asked for and can be, else ``array`` itself.

    Of a file that is mapped, what a large value was computed of need not stay in memory.
    """
    if array.nbytes < LARGE or mapped_around(array) is not None:
        return array
    for source in sources:
        let_go(source)
    return _placed(array)


def _placed(array: Array) -> Array:
    folder = _FOLDER.get()
    if folder is None or not folder.left or array.dtype.hasobject:
        return array
    try:
        with TemporaryFile(dir=folder.path) as file:
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            file.flush()
            content = mmap(file.fileno(), array.nbytes, access=ACCESS_READ)
    except OSError:  # there is no room, and there may be some in memory
        return array
    folder.left -= 1
    return np.frombuffer(content, array.dtype).reshape(array.shape)
