"""Elements as files store them: little-endian, and those narrower than a byte packed.

Elements that share a byte stand in it the first in the lowest bits, as ONNX has them.
"""

from __future__ import annotations

import math
import mmap as mapped
import sys
from collections.abc import Iterable
from mmap import PAGESIZE, mmap
from typing import Any, Final

import numpy as np

from tract_core.data.datum_type import DatumType
from tract_core.errors import CorruptModel, LimitExceeded, Unsupported
from tract_core.limits import DEFAULT_LIMITS, LoadLimits

Array = np.ndarray[Any, Any]

Buffer = mmap | bytes | Array
"""The bytes of a file, or some of them: an array of ``uint8``."""

MAX_ELEMENTS: Final = 1 << 58
"""Elements of a tensor, axes of size 0 not counted."""

BITS: Final = {DatumType.U4: 4, DatumType.I4: 4, DatumType.F4E2M1FN: 4, DatumType.U2: 2, DatumType.I2: 2}
"""Bits that one element takes in the file, of types that share a byte."""


def check_rank(rank: int, limits: LoadLimits) -> None:
    """Raises LimitExceeded for too many axes."""
    if rank > limits.max_rank:
        raise LimitExceeded(f"it has {rank} axes, at most {limits.max_rank} are allowed")


def checked_shape(dims: Iterable[int], limits: LoadLimits = DEFAULT_LIMITS) -> tuple[int, ...]:
    """Sizes from a file as a shape. Raises CorruptModel for negative ones, LimitExceeded for too many."""
    shape = tuple(map(int, dims))
    check_rank(len(shape), limits)
    if min(shape, default=0) < 0:
        raise CorruptModel(f"its shape {list(shape)} has a negative size")
    if math.prod(filter(None, shape)) > MAX_ELEMENTS:
        raise LimitExceeded(f"its shape {list(shape)} has more elements than memory has addresses")
    return shape


def byte_count(kind: DatumType, shape: tuple[int, ...]) -> int:
    """Bytes that the elements take in a file, packed. Raises Unsupported for strings."""
    if kind is DatumType.STRING:
        raise Unsupported("strings cannot be raw or external data")
    count = math.prod(shape)
    return -(-count * BITS[kind] // 8) if kind in BITS else count * kind.itemsize


def from_bytes(kind: DatumType, shape: tuple[int, ...], content: Buffer, offset: int, length: int) -> Array:
    """The array of little-endian elements in ``content``: a view, but for types narrower than a byte and booleans.

    Raises CorruptModel when there are more or fewer bytes than the shape wants.
    """
    wanted = byte_count(kind, shape)
    if wanted != length:
        listed = ",".join(map(str, shape))
        raise CorruptModel(f"{length} bytes are there, {kind.short} of shape [{listed}] takes {wanted}")
    if length == 0:
        return np.empty(shape, kind.numpy)
    if kind in BITS:
        return unpack(kind, shape, np.frombuffer(content, np.uint8, length, offset))
    if kind is DatumType.BOOL:
        return (np.frombuffer(content, np.uint8, length, offset) != 0).reshape(shape)
    return np.frombuffer(content, kind.numpy, math.prod(shape), offset).reshape(shape)


def unpack(kind: DatumType, shape: tuple[int, ...], packed: Array) -> Array:
    """Elements that share bytes, the lowest bits first, each in a byte of its own."""
    bits = BITS[kind]
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = (packed[:, None] >> shifts & ((1 << bits) - 1)).reshape(-1)[: math.prod(shape)]
    if kind.is_float():
        return codes.view(kind.numpy).reshape(shape)
    if kind.is_signed():
        codes = ((codes ^ (1 << bits - 1)).astype(np.int8) - (1 << bits - 1)).astype(np.int8)
    return codes.astype(kind.numpy).reshape(shape)


def pack(kind: DatumType, elements: Array) -> Array:
    """The bytes of elements of a type narrower than a byte, which `unpack` takes apart again."""
    bits = BITS[kind]
    per_byte = 8 // bits
    codes = elements.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    padded = np.zeros((-(-codes.size // per_byte), per_byte), np.uint8)
    padded.reshape(-1)[: codes.size] = codes
    return np.bitwise_or.reduce(padded << np.arange(0, 8, bits, dtype=np.uint8), axis=1, dtype=np.uint8)


def mapped_around(array: Array) -> mmap | None:
    """The mapped file whose memory an array is part of; ``None`` for any other."""
    whole: Any = array
    while whole is not None and not isinstance(whole, mmap):
        whole = whole.obj if isinstance(whole, memoryview) else getattr(whole, "base", None)
    return whole


def let_go(array: Array) -> None:
    """Tell the system that the elements of an array in a mapped file need not stay in memory, as there is a copy.

    They are read from the file again where somebody asks for them after all.
    """
    whole = mapped_around(array)
    if sys.platform == "win32" or whole is None or not memoryview(whole).readonly:  # Windows decides that by itself
        return
    begin = np.frombuffer(whole, np.uint8).__array_interface__["data"][0]
    first, last = (one - begin for one in np.lib.array_utils.byte_bounds(array))
    first, last = -(-first // PAGESIZE) * PAGESIZE, last // PAGESIZE * PAGESIZE
    if last > first:
        whole.madvise(mapped.MADV_DONTNEED, first, last - first)
