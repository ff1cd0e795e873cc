"""Files of safetensors: tensors by name, and some texts about them.

The form is that of the README of github.com/huggingface/safetensors: eight bytes for the length of a header of JSON,
the header, and the elements. Nothing in it is run, and what is read lies in the file's memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from mmap import mmap
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from tract_core.data import DatumType
from tract_core.data.stored import byte_count, checked_shape, from_bytes
from tract_core.errors import CorruptModel
from tract_core.frozen import frozen
from tract_core.limits import DEFAULT_LIMITS
from tract_core.safe_files import map_path
from tract_core.saving import whole_file

Array = npt.NDArray[Any]

ABOUT: Final = "__metadata__"

MOST_HEADER: Final = 1 << 22
"""Bytes of a header; some hundred tensors take 30,000."""

_KINDS: Final = {
    "F64": DatumType.F64,
    "F32": DatumType.F32,
    "F16": DatumType.F16,
    "BF16": DatumType.BF16,
    "I64": DatumType.I64,
    "I8": DatumType.I8,
    "U8": DatumType.U8,
}
_NAMES: Final = {kind.numpy: name for name, kind in _KINDS.items()}


@frozen
class TensorFile:
    """``about``: the texts of ``__metadata__``. ``tensors``: by name, over the memory of the file."""

    about: Mapping[str, str]
    tensors: Mapping[str, Array]


def write_tensors(path: Path, about: Mapping[str, str], tensors: Mapping[str, Array]) -> None:
    """Write such a file. Raises InputError where it cannot be written."""
    header: dict[str, Any] = {ABOUT: dict(about)}
    place = 0
    for name, array in tensors.items():
        ends = [place, place + array.nbytes]
        header[name] = {"dtype": _NAMES[array.dtype], "shape": array.shape, "data_offsets": ends}
        place += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with whole_file(path) as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def read_tensors(path: Path) -> TensorFile:
    """What such a file holds. Raises ModelError for one that cannot be read, or breaks the rules."""
    content = map_path(path, DEFAULT_LIMITS)
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(len(content) - 8, MOST_HEADER):
        raise CorruptModel(f"it has {len(content)} bytes, and its header is to have {length}")
    header = parsed(content[8 : 8 + length])
    about = header.get(ABOUT, {})
    if not isinstance(about, dict):
        raise CorruptModel(f"its {ABOUT} is a {type(about).__name__}, wanted an object")
    texts = {key: one for key, one in cast("Mapping[str, object]", about).items() if isinstance(one, str)}
    return TensorFile(
        texts, {name: _tensor(name, said, content, 8 + length) for name, said in header.items() if name != ABOUT}
    )


def parsed(content: bytes) -> Mapping[str, Any]:
    """An object of JSON. Raises CorruptModel for anything else."""
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CorruptModel(f"its header is no JSON: {error!s:.200}") from None
    if not isinstance(found, dict):
        raise CorruptModel(f"its header is a {type(found).__name__}, wanted an object")
    return cast("Mapping[str, Any]", found)


def _tensor(name: str, said: Any, content: mmap | bytes, start: int) -> Array:
    what = f"tensor {name!r:.80}"
    entry: Mapping[str, Any] = cast("Mapping[str, Any]", said) if isinstance(said, dict) else {}
    kind, dims, ends = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    sizes, places = _sizes(dims), _sizes(ends)
    if known is None or sizes is None or places is None or len(places) != 2:
        raise CorruptModel(f"its header is {said!r:.200}, wanted dtype, shape and data_offsets", where=what)
    shape = checked_shape(sizes)
    first, last = places
    if not first <= last <= len(content) - start or last - first != byte_count(known, shape):
        there = f"it lies from {first} to {last} of {len(content) - start} bytes"
        raise CorruptModel(f"{there}, and {prod(shape)} elements of {kind} are wanted", where=what)
    return from_bytes(known, shape, content, start + first, last - first)


def _sizes(found: object) -> list[int] | None:
    """A list of integers that are 0 or more."""
    if not isinstance(found, list):
        return None
    several = cast("list[object]", found)
    sizes = [one for one in several if type(one) is int and one >= 0]
    return sizes if len(sizes) == len(several) else None
