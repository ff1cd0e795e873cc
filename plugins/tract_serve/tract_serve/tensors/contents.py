"""Arrays from what clients send, and back: bytes in row-major order, lists of JSON."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any, Final, cast

import numpy as np

from tract_core.data import DatumType
from tract_core.texts import printable
from tract_serve.errors import BadRequest, Failed

Array = np.ndarray[Any, Any]

MOST_AXES: Final = 64
"""NumPy has no more."""

_LENGTH: Final = struct.Struct("<I")
"""What stands in front of each element of type BYTES."""


def shape_of(given: object, where: str) -> tuple[int, ...]:
    """A shape, outermost axis first. Raises BadRequest for what is none."""
    if not isinstance(given, (list, tuple)):
        raise BadRequest(f"shape is {_shown(given)}, wanted a list of whole numbers", where=where)
    sizes = cast("Sequence[object]", given)
    if len(sizes) > MOST_AXES:
        raise BadRequest(f"shape has {len(sizes)} axes, wanted at most {MOST_AXES}", where=where)
    for size in sizes:
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 63:
            raise BadRequest(f"shape has {_shown(size)}, wanted whole numbers from 0 on", where=where)
    return tuple(cast("Sequence[int]", sizes))


def from_bytes(kind: DatumType, shape: tuple[int, ...], content: Any, where: str) -> Array:
    """The array whose elements lie in ``content`` one after the other, little end first. It is not copied, but BYTES.

    Raises BadRequest where there are more or fewer bytes than the shape wants.
    """
    if kind is DatumType.STRING:
        return _from_texts(shape, content, where)
    wanted, found = prod(shape) * kind.itemsize, memoryview(content).nbytes
    if found != wanted:
        name = "x".join(map(str, shape)) or "one number"
        raise BadRequest(f"{found} bytes came, wanted {wanted} for {kind.short} of shape {name}", where=where)
    flat = np.frombuffer(content, np.uint8 if kind is DatumType.BOOL else kind.numpy)
    if kind is DatumType.BOOL:
        if flat.size and flat.max(initial=0) > 1:
            raise BadRequest(f"a BOOL is {flat.max()}, wanted bytes of 0 and 1", where=where)
        flat = flat.view(np.bool_)
    return flat.reshape(shape)


def to_bytes(array: Array) -> Any:
    """The elements one after the other, little end first: memory of the array where that is so already."""
    if array.dtype.kind == "O":
        return b"".join(part for text in array.reshape(-1).tolist() for part in _with_length(text))
    whole = np.ascontiguousarray(array)
    return memoryview(whole.reshape(-1).view(np.uint8)).cast("B") if whole.size else b""


def from_json(kind: DatumType, shape: tuple[int, ...], data: object, where: str) -> Array:
    """The array of a list of JSON, flat or nested as the shape is.

    Raises BadRequest where it holds something else than the type does, a number that the type cannot hold, or more or
    fewer elements than the shape wants.
    """
    if not isinstance(data, list):
        raise BadRequest(f"data is {_shown(data)}, wanted a list", where=where)
    if kind is DatumType.STRING:
        found = _texts(cast("list[object]", data), where)
    else:
        try:
            found = np.array(data)
        except (ValueError, OverflowError, RecursionError):
            problem = "data is nested unevenly or too deep, wanted a flat list, or lists as the shape says"
            raise BadRequest(problem, where=where) from None
    if found.size != prod(shape):
        raise BadRequest(f"data has {found.size} elements, wanted {prod(shape)} for the shape", where=where)
    if found.ndim > 1 and found.shape != shape:
        raise BadRequest(f"data is nested as {list(found.shape)}, shape is {list(shape)}", where=where)
    return (found if kind is DatumType.STRING else _as_type(found, kind, where)).reshape(shape)


def to_json(array: Array, where: str) -> tuple[Any, bool]:
    """The elements as one flat list or array that JSON is made of, and whether all are finite numbers.

    Raises Failed for texts that are no Unicode.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "O":
        try:
            return [text if isinstance(text, str) else text.decode() for text in flat.tolist()], True
        except UnicodeDecodeError:
            raise Failed(
                "bytes that are no text cannot be told in JSON", where=where, hint="ask for binary_data"
            ) from None
    if flat.dtype.kind == "V" or flat.dtype == np.float16:  # bf16, which NumPy knows nothing of
        flat = flat.astype(np.float32)
    finite = flat.dtype.kind != "f" or bool(np.isfinite(flat).all())
    return (flat if finite else flat.tolist()), finite


def _as_type(found: Array, kind: DatumType, where: str) -> Array:
    """Numbers as the type holds them."""
    wanted = "iuf" if kind.is_float() else "b" if kind is DatumType.BOOL else "iu"
    if found.dtype.kind not in wanted and found.size:
        names = {"iuf": "numbers", "b": "true and false", "iu": "whole numbers"}
        raise BadRequest(f"data holds something else than {names[wanted]}, which {kind.short} has", where=where)
    if wanted == "iu" and found.size:
        least, most = np.iinfo(kind.numpy).min, np.iinfo(kind.numpy).max
        if int(found.min()) < least or int(found.max()) > most:
            raise BadRequest(f"data holds numbers outside {least} to {most}, which {kind.short} has", where=where)
    with np.errstate(over="ignore"):
        result = found.astype(kind.numpy)
    if wanted == "iuf" and bool((np.isinf(result) & np.isfinite(found)).any()):
        raise BadRequest(f"data holds numbers that are too large for {kind.short}", where=where)
    return result


def _texts(data: list[object], where: str) -> Array:
    """Texts, flat or nested."""
    found = np.array(data, dtype=object)
    if not all(isinstance(one, str) for one in found.reshape(-1).tolist()):
        raise BadRequest("data holds something else than texts, which BYTES has", where=where)
    return found


def _from_texts(shape: tuple[int, ...], content: Any, where: str) -> Array:
    """Elements of BYTES: of each, four bytes say how long it is."""
    view, at, count = memoryview(content), 0, prod(shape)
    if count * _LENGTH.size > view.nbytes:
        raise BadRequest(
            f"{view.nbytes} bytes came, wanted {count} elements of BYTES, each behind its length", where=where
        )
    found: Array = np.empty(count, object)
    for number in range(count):
        end = at + _LENGTH.size
        end += _LENGTH.unpack_from(view, at)[0] if end <= view.nbytes else 0
        if end > view.nbytes or end < at + _LENGTH.size:
            raise BadRequest(f"element {number} of {count} ends behind the data", where=where)
        found[number] = bytes(view[at + _LENGTH.size : end]).decode("utf-8", "surrogateescape")
        at = end
    if at != view.nbytes:
        raise BadRequest(f"{view.nbytes - at} bytes are left behind the last element", where=where)
    return found.reshape(shape)


def _with_length(text: str | bytes) -> tuple[bytes, bytes]:
    content = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return _LENGTH.pack(len(content)), content


def _shown(value: object) -> str:
    """A value of a client, short."""
    text = repr(value) if not isinstance(value, (list, dict)) else f"a {type(value).__name__}"
    return printable(text[:40])
