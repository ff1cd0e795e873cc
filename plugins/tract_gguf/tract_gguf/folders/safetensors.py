"""Files of safetensors: a header of JSON, and the elements behind it, in place.

The format is that of the README of github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from mmap import mmap
from typing import Any, Final, cast

import numpy as np

from tract_core.data import DatumType
from tract_core.data.stored import checked_shape
from tract_core.errors import CorruptModel, LimitExceeded, Unsupported
from tract_core.limits import LoadLimits, check_time
from tract_core.plugins.keys import Array
from tract_gguf.reading.tensors import GgufTensor

_KINDS: Final = {
    "F64": DatumType.F64,
    "F32": DatumType.F32,
    "F16": DatumType.F16,
    "BF16": DatumType.BF16,
    "I64": DatumType.I64,
    "I32": DatumType.I32,
    "I16": DatumType.I16,
    "I8": DatumType.I8,
    "U8": DatumType.U8,
    "F8_E4M3": DatumType.F8E4M3FN,
    "F8_E8M0": DatumType.F8E8M0FNU,
}

_OTHERS: Final = frozenset({"BOOL", "U16", "U32", "U64", "F8_E5M2", "F4", "C64"})
"""Types that weights of the networks here do not have."""


def read_tensors(content: mmap | bytes, limits: LoadLimits) -> Mapping[str, GgufTensor]:
    """The tensors of a file, by name, over its memory. Raises ModelError."""
    if len(content) < 8:
        raise CorruptModel(f"it has {len(content)} bytes, a file of safetensors 8 and more")
    length = int.from_bytes(content[:8], "little")
    if length > len(content) - 8:
        raise CorruptModel(f"its header is to have {length} bytes, {len(content) - 8} are left")
    if length > limits.max_parsed_bytes:
        raise LimitExceeded(f"its header has {length} bytes, {limits.max_parsed_bytes} are allowed")
    header = parsed(content[8 : 8 + length], "the header")
    data: Array = np.frombuffer(content, np.uint8)[8 + length :]
    found: dict[str, GgufTensor] = {}
    for name, said in header.items():
        check_time()
        if name != "__metadata__":
            found[name] = _tensor(name, said, data, limits)
    return found


def parsed(content: bytes, what: str) -> Mapping[str, Any]:
    """An object of JSON. Raises CorruptModel for anything else."""
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CorruptModel(f"{what} is no JSON: {error!s:.200}") from None
    if not isinstance(found, dict):
        raise CorruptModel(f"{what} is a {type(found).__name__}, wanted an object of JSON")
    return cast("Mapping[str, Any]", found)


def _tensor(name: str, said: Any, data: Array, limits: LoadLimits) -> GgufTensor:
    what = f"tensor {name!r:.80}"
    kind, dims, (first, last) = _said(said, what)
    if not 0 <= first <= last <= len(data):
        raise CorruptModel(f"it lies from {first} to {last}, the file has {len(data)} bytes of data", where=what)
    shape = checked_shape(dims, limits)
    known = _element_type(kind, what)
    wanted = int(np.prod(shape, dtype=object)) * known.itemsize
    if last - first != wanted:
        raise CorruptModel(f"it takes {last - first} bytes, its shape {list(shape)} takes {wanted}", where=what)
    if wanted > limits.max_tensor_bytes:
        raise LimitExceeded(f"it takes {wanted} bytes, {limits.max_tensor_bytes} are allowed", where=what)
    return GgufTensor(name, known.short, shape, data[first:last] if wanted else np.empty(0, np.uint8))


def _element_type(kind: object, what: str) -> DatumType:
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind]
    error = Unsupported if isinstance(kind, str) and kind in _OTHERS else CorruptModel
    raise error(f"its elements are of type {kind!r:.80}; known are {', '.join(_KINDS)}", where=what)


def _said(said: Any, what: str) -> tuple[object, list[int], list[int]]:
    """Type, shape, and where the elements begin and end. Raises CorruptModel for anything else."""
    if isinstance(said, dict):
        entry = cast("Mapping[str, object]", said)
        dims, ends = _sizes(entry.get("shape")), _sizes(entry.get("data_offsets"))
        if dims is not None and ends is not None and len(ends) == 2:
            return entry.get("dtype"), dims, ends
    raise CorruptModel(f"its header is {said!r:.80}, wanted dtype, shape and data_offsets", where=what)


def _sizes(found: object) -> list[int] | None:
    """A list of integers that are 0 or more."""
    if not isinstance(found, list):
        return None
    sizes = [one for one in cast("list[object]", found) if type(one) is int and one >= 0]
    return sizes if len(sizes) == len(cast("list[object]", found)) else None
