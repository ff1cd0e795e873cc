"""Archives to read from: a folder, a tar, a gzip-compressed tar. What a file is decides, never its name.

Nothing is extracted. The files of a folder and of an uncompressed tar are mapped into memory: a tensor takes none
before it is used, and the file has to stay as it is as long as the model is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import islice
from mmap import mmap
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np

from tract_core.data.stored import Array
from tract_core.errors import CorruptModel, LimitExceeded, ModelError, TractError, UnsafePath, meant
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, count_node, spending
from tract_core.lookalikes import HEAD, recognise
from tract_core.safe_files import check_size, map_file, map_path, plain_file_below, resolve_below
from tract_nnef.archive.inflate import GZIP, Inflated, Inflation, Mapped, aligned
from tract_nnef.archive.names import PACKED, fits_folder, wanted_name
from tract_nnef.archive.tar import BLOCK, MAX_HEADERS, is_tar, read_tar

GRAPH: Final = "graph.nnef"
"""The file that every archive has: the text of the model."""

SMALL: Final = 1 << 15
"""Bytes from which on a file of a folder is mapped rather than read."""

MAX_MAPPED: Final = 400
"""Files of one folder that are mapped, the others are read: each takes a descriptor, of which a process has 1024."""

_NO_OTHERS: Final = "keep the model in a folder of its own"


class Archive(Protocol):
    """The files of a model, by name.

    A name has ``/`` between its parts; ``./`` and ``/`` at its beginning do not count. Files of which a part of the
    name begins with a dot are not there.
    """

    def names(self) -> tuple[str, ...]:
        """All files, those of submodels in folders included. Raises ModelError."""
        ...

    def __contains__(self, name: str) -> bool:
        """Whether there is something of that name."""
        ...

    def content(self, name: str) -> Array:
        """The bytes of a file, read-only. Raises CorruptModel where there is none, UnsafePath, LimitExceeded."""
        ...

    def submodel(self, label: str) -> Archive | None:
        """The archive ``label.nnef.tgz`` or ``label.nnef.tar`` in this one, or its folder; ``None`` where none is.

        Raises ModelError when it is none that can be read.
        """
        ...


def open_archive(source: str | os.PathLike[str] | bytes, limits: LoadLimits = DEFAULT_LIMITS) -> Archive:
    """The archive in a folder or in a file, or in the bytes of one. Raises ModelError, with the path."""
    opening = Opening(limits, Inflation(limits))
    with spending(limits):
        if isinstance(source, bytes):
            check_size(len(source), limits)
            opening.inflation.allow(len(source))
            return _packed(np.frombuffer(source, np.uint8), opening)
        path = Path(source)
        try:
            return _of_path(path, opening)
        except TractError as error:
            raise error.at(str(path)) from error.__cause__


class Opening(NamedTuple):
    """What archives inside one another share. ``depth``: how many are around this one."""

    limits: LoadLimits
    inflation: Inflation
    depth: int = 0

    def below(self) -> Opening:
        """For an archive in this one. Raises LimitExceeded when there are too many around it."""
        if self.depth >= self.limits.max_depth:
            raise LimitExceeded(f"there are more than {self.limits.max_depth} archives inside one another")
        return self._replace(depth=self.depth + 1)


class TarArchive:
    """The files of a tar, or of a folder in it. ``file``: the mapped one whose memory they are part of, if any."""

    def __init__(self, entries: dict[str, Array], opening: Opening, file: mmap | None = None) -> None:
        self._entries = entries
        self._opening = opening
        self._file = file

    def names(self) -> tuple[str, ...]:
        """All files, in their order in the tar."""
        return tuple(self._entries)

    def __contains__(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return wanted_name(name) in self._entries

    def content(self, name: str) -> Array:
        """A part of the file that is mapped, or of what was inflated."""
        found = self._entries.get(wanted_name(name) or "")
        if found is None:
            raise _missing(name, self._entries)
        if self._file is not None and self._file.size() < len(self._file):
            raise CorruptModel(
                f"the file became shorter while it was open: {len(self._file)} bytes became {self._file.size()}",
                hint="write a new file and rename it, as this project does, rather than into one that is in use",
            )
        return found

    def submodel(self, label: str) -> Archive | None:
        """One that is packed in the tar, or a folder in it."""
        packed = _packed_name(self, label)
        if packed is not None:
            return _inner(self.content(packed), self._opening, packed, self._file)
        top = f"{wanted_name(label)}/"
        below = {name.removeprefix(top): found for name, found in self._entries.items() if name.startswith(top)}
        return TarArchive(below, self._opening.below(), self._file) if GRAPH in below else None


class FolderArchive:
    """The files of a folder, each of which is opened when it is asked for.

    Links that stay in the folder are followed. Where the graph is a link itself, as in the cache of Hugging Face, the
    folder of the file behind it belongs to the model as well.
    """

    def __init__(self, folder: Path, opening: Opening) -> None:
        self._folder = folder
        self._opening = opening
        self._folders = list(dict.fromkeys((_resolved(folder), _resolved(folder / GRAPH).parent)))
        self._mapped = 0

    def names(self) -> tuple[str, ...]:
        """All files, sorted. Links to folders are not followed."""
        found: list[str] = []
        seen = 0
        folders = [""]
        while folders:
            top = folders.pop()
            for entry in _listed(self._folder / top):
                seen += 1
                if seen > MAX_HEADERS:
                    raise LimitExceeded(f"the folder holds more than {MAX_HEADERS} files", hint=_NO_OTHERS)
                count_node()
                if not entry.name.startswith("."):
                    is_folder = entry.is_dir(follow_symlinks=False)
                    (folders if is_folder else found).append(f"{top}{entry.name}{'/' if is_folder else ''}")
        return tuple(sorted(found))

    def __contains__(self, name: str) -> bool:
        """Whether there is anything of that name."""
        location = wanted_name(name)
        return bool(location) and fits_folder(location) and os.path.lexists(self._folder / location)

    def content(self, name: str) -> Array:
        """A file that is mapped, or read where it is small."""
        location = wanted_name(name)
        if not location or not fits_folder(location):
            raise _missing(name)
        try:
            folder, path = resolve_below(self._folders, location)
            with plain_file_below(folder, path, location) as (descriptor, status):
                return self._content(descriptor, status.st_size)
        except FileNotFoundError:
            raise _missing(name) from None
        except OSError as error:
            raise ModelError(f"{location!r} cannot be read: {error.strerror}", hint="check its permissions") from None

    def submodel(self, label: str) -> Archive | None:
        """One that is packed in a file of the folder, or a folder in it."""
        packed = _packed_name(self, label)
        if packed is not None:
            content = self.content(packed)
            self._opening.inflation.allow(len(content))
            return _inner(content, self._opening, packed)
        location = wanted_name(label)
        if not location or f"{location}/{GRAPH}" not in self:
            return None
        folder, path = resolve_below(self._folders, location)
        return FolderArchive(folder / path, self._opening.below())

    def _content(self, descriptor: int, size: int) -> Array:
        check_size(size, self._opening.limits)
        if size >= SMALL and self._mapped < MAX_MAPPED:
            self._mapped += 1
            return np.frombuffer(map_file(descriptor, size), np.uint8)
        content = aligned(size)
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            left = content.data
            while left:
                taken = file.readinto(left)
                if not taken:
                    raise CorruptModel("the file became shorter while it was read")
                left = left[taken:]
        content.flags.writeable = False
        return content


def _of_path(path: Path, opening: Opening) -> Archive:
    if os.path.isdir(path):
        return FolderArchive(path, opening)
    content = map_path(path, opening.limits)
    opening.inflation.allow(len(content))
    file = content if isinstance(content, mmap) else None
    return _packed(np.frombuffer(content, np.uint8), opening, path.name, file)


def _inner(content: Array, opening: Opening, name: str, file: mmap | None = None) -> Archive:
    try:
        return _packed(content, opening.below(), name, file)
    except TractError as error:
        raise error.at(f"the submodel {name!r}") from error.__cause__


def _packed(content: Array, opening: Opening, name: str = "", file: mmap | None = None) -> Archive:
    """The archive in the bytes of a file. ``file``: the mapped one that they are part of."""
    is_compressed = content[: len(GZIP)].tobytes() == GZIP
    source = Inflated(content, opening.inflation) if is_compressed else Mapped(content)
    first = source.take(BLOCK).tobytes()
    if not is_tar(first):
        raise _no_archive(first if is_compressed else content[:HEAD].tobytes(), name, is_compressed)
    try:
        return TarArchive(read_tar(first, source), opening, None if is_compressed else file)
    except MemoryError:
        raise LimitExceeded("there is no memory for the files in it") from None


def _no_archive(head: bytes, name: str, is_compressed: bool) -> CorruptModel:
    """What to say of a file that begins with ``head``, once it is inflated where it ``is_compressed``."""
    if head.startswith(GZIP):
        return CorruptModel("it is compressed twice", hint="inflate it once, as with 'gunzip'")
    if re.match(rb"\s*(#[^\n]*\n\s*)*version\s+\d", head):
        hint = "give the path of the folder that it is in"
        return CorruptModel("wanted an archive, found the text of a graph", hint=hint)
    found = recognise(head, name)
    return CorruptModel(
        "it is no NNEF archive: wanted a folder, a tar, or a gzip-compressed tar"
        + (f", found {found.what}" if found else "")
        + (", compressed" if found and is_compressed else ""),
        hint=found.advice if found else None,
    )


def _packed_name(archive: Archive, label: str) -> str | None:
    """The name of the file that holds a submodel; the label of one may end with ``.nnef`` itself."""
    stem = label.removesuffix(".nnef")
    return next((name for suffix in PACKED if (name := stem + suffix) in archive), None)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise UnsafePath(f"it leads nowhere: {error}") from None


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, MAX_HEADERS + 1))
    except OSError as error:
        raise ModelError(f"the folder cannot be listed: {error.strerror}", hint="check its permissions") from None


def _missing(name: str, there: Iterable[str] = ()) -> CorruptModel:
    near = meant(name, there)
    return CorruptModel(
        f"there is no file {name[:200]!r} in the archive", hint=f"there is {near[0]!r}" if near else None
    )
