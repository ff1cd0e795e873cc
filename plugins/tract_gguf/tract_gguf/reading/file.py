"""A whole file: the header, the metadata, and the tensors, in one mapped piece of memory.

The format is that of ``docs/gguf.md`` in the repository of ggml, in its versions 2 and 3.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from mmap import mmap
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np

from tract_core.errors import CorruptModel, TractError, Unsupported, VersionError
from tract_core.frozen import frozen
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, spending
from tract_core.plugins.keys import Array
from tract_core.safe_files import check_size, map_path
from tract_gguf.reading.cursor import Cursor
from tract_gguf.reading.metadata import Value, read_metadata
from tract_gguf.reading.quantised import QuantisedTensor
from tract_gguf.reading.tensors import LEAST, GgufTensor, place_tensors, read_infos

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)

ALIGNMENT: Final = 32
"""What tensors begin at multiples of, in bytes, where a file does not say it."""

_LEAST_PAIR: Final = 13
"""Bytes of a pair of metadata at least."""

_OLDER: Final = (b"lmgg", b"fmgg", b"tjgg", b"algg")

T = TypeVar("T")


@frozen
class GgufFile:
    """What a file holds. ``metadata``: values by key; ``tensors``: by name, in the order of the file.

    Folders may have tensors that were quantised otherwise than in files.

    ``version``: of the format. ``alignment``: what tensors begin at multiples of, in bytes.
    """

    version: int
    alignment: int
    metadata: Mapping[str, Value]
    tensors: Mapping[str, GgufTensor | QuantisedTensor]

    @property
    def architecture(self) -> str:
        """The name of the network that the tensors are weights of. Raises CorruptModel where the file has none."""
        return self.text("general.architecture")

    def text(self, key: str) -> str:
        """A text of the metadata. Raises CorruptModel where there is none."""
        return self._of(key, str, "a text")

    def number(self, key: str, default: float | None = None) -> float:
        """A number of the metadata, or ``default``. Raises CorruptModel where there is neither, or something else."""
        return float(self._of(key, (int, float), "a number", default))

    def integer(self, key: str, default: int | None = None) -> int:
        """An integer of the metadata, or ``default``. Raises CorruptModel where there is neither, or something else."""
        return self._of(key, int, "an integer", default)

    def _of(self, key: str, kind: Any, wanted: str, default: Any = None) -> Any:
        found = self.metadata.get(key, default)
        if not isinstance(found, kind) or isinstance(found, bool):
            is_there = key in self.metadata
            problem = f"the metadata have {f'{found!r:.80}' if is_there else 'nothing'} as {key}, wanted {wanted}"
            raise CorruptModel(problem)
        return found


def read_file(source: str | os.PathLike[str] | bytes, limits: LoadLimits = DEFAULT_LIMITS) -> GgufFile:
    """What a file holds, or the bytes of one. Raises ModelError, with the path.

    The file is mapped into memory, and has to stay as it is as long as its tensors are used.
    """
    if isinstance(source, bytes):
        check_size(len(source), limits)
        return _read(source, limits)
    path = Path(source)
    try:
        return _read(map_path(path, limits), limits)
    except TractError as error:
        raise error.at(str(path)) from error.__cause__


def _read(content: mmap | bytes, limits: LoadLimits) -> GgufFile:
    with spending(limits):
        cursor = Cursor(content, limits)
        version = _version(cursor)
        tensors = cursor.count(LEAST, "the number of tensors")
        pairs = cursor.count(_LEAST_PAIR, "the number of pairs of metadata")
        metadata = read_metadata(cursor, pairs)
        infos = read_infos(cursor, tensors)
        alignment = _alignment(metadata)
        begin = min(-(-cursor.at // alignment) * alignment, len(content))
        data: Array = np.frombuffer(content, np.uint8)[begin:]
        placed = place_tensors(infos, data, alignment, limits.max_tensor_bytes)
    return GgufFile(version, alignment, MappingProxyType(metadata), MappingProxyType(placed))


def _version(cursor: Cursor) -> int:
    magic = bytes(cursor.content[:4])
    if magic in _OLDER:
        raise VersionError(
            "the file is in a format of ggml from before GGUF", hint="take a file of the same model in GGUF"
        )
    if magic != MAGIC:
        raise CorruptModel(f"it begins with {magic.hex(' ') or 'nothing'}, a file of GGUF with {MAGIC.hex(' ')}")
    cursor.take(4, "its first bytes")
    version = cursor.u32("the version")
    if version in VERSIONS:
        return version
    if int.from_bytes(version.to_bytes(4, "big"), "little") in VERSIONS:
        raise Unsupported(
            "the file is big-endian; little-endian ones are read", hint="convert it with gguf_convert_endian"
        )
    known = " and ".join(map(str, VERSIONS))
    raise VersionError(
        f"the file is in version {version} of GGUF, versions {known} are read",
        hint="take a newer file of the same model",
    )


def _alignment(metadata: Mapping[str, Value]) -> int:
    found = metadata.get("general.alignment", ALIGNMENT)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1 or found & (found - 1) or found > 1 << 31:
        raise CorruptModel(f"general.alignment is {found!r:.80}, wanted a power of two of 32 bits")
    return found
