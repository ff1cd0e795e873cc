"""Arrays from what clients send, and back: bytes in row-major order, lists of JSON."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any, Final, cast

import numpy as np
import orjson

from tract_core.data import DatumType
from tract_serve.errors import BadRequest
from tract_serve.tensors.types import type_name
from tract_serve.texts import shown

Array = np.ndarray[Any, Any]

MOST_AXES: Final = 64
"""NumPy has no more."""

MOST_ELEMENTS: Final = 1 << 59
"""Of a shape, sizes of 0 left out: NumPy counts bytes in 63 bits, and an element has at most 16."""

_LENGTH: Final = struct.Struct("<I")
"""What stands in front of each element of type BYTES."""

TEXTS: Final = 18
"""Bytes of memory that a byte of BYTES becomes at most, as an array of texts."""

_PIECE: Final = 1 << 14
"""Elements of JSON that are written at once: other threads have their turn in between."""


def shape_of(given: object, where: str) -> tuple[int, ...]:
    """A shape, outermost axis first. Raises BadRequest for what is none."""
    if not isinstance(given, (list, tuple)):
        raise BadRequest(f"shape is {shown(given)}, wanted a list of whole numbers", where=where)
    sizes = cast("Sequence[object]", given)
    if len(sizes) > MOST_AXES:
        raise BadRequest(f"shape has {len(sizes)} axes, wanted at most {MOST_AXES}", where=where)
    for size in sizes:
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 63:
            raise BadRequest(f"shape has {shown(size)}, wanted whole numbers from 0 on", where=where)
    found = tuple(cast("Sequence[int]", sizes))
    if prod(size or 1 for size in found) > MOST_ELEMENTS:
        raise BadRequest("shape has more elements than there is memory anywhere", where=where)
    return found


def from_bytes(kind: DatumType, shape: tuple[int, ...], content: Any, where: str) -> Array:
    """The array whose elements lie in ``content`` one after the other, little end first. It is not copied, but BYTES.

    Raises BadRequest where there are more or fewer bytes than the shape wants.
    """
    if kind is DatumType.STRING:
        return _from_texts(shape, content, where)
    wanted, found = prod(shape) * kind.itemsize, memoryview(content).nbytes
    if found != wanted:
        name = "x".join(map(str, shape)) or "one number"
        raise BadRequest(f"{found} bytes came, wanted {wanted} for {type_name(kind)} of shape {name}", where=where)
    flat = np.frombuffer(content, np.uint8 if kind is DatumType.BOOL else kind.numpy)
    if kind is DatumType.BOOL:
        flat = _bools(flat, where)
    if not flat.flags.aligned:  # as behind JSON of any length; a run would copy it as well, and not go the short way
        flat = flat.copy()
    return flat.reshape(shape)


def _bools(flat: Array, where: str) -> Array:
    """Bytes as truths."""
    if flat.max(initial=0) > 1:
        raise BadRequest(f"a BOOL is {flat.max()}, wanted bytes of 0 and 1", where=where)
    return flat.view(np.bool_)


def to_bytes(array: Array) -> Any:
    """The elements one after the other, little end first: memory of the array where that is so already."""
    if array.dtype.kind == "O":
        return b"".join(part for text in array.reshape(-1).tolist() for part in _with_length(text))
    whole = np.ascontiguousarray(array)
    return whole.reshape(-1).view(np.uint8).data if whole.size else b""


def from_json(kind: DatumType, shape: tuple[int, ...], data: object, where: str) -> Array:
    """The array of a list of JSON, flat or nested as the shape is.

    Raises BadRequest where it holds something else than the type does, a number that the type cannot hold, or more or
    fewer elements than the shape wants.
    """
    if not isinstance(data, list):
        raise BadRequest(f"data is {shown(data)}, wanted a list", where=where)
    elements, nesting = _flat(cast("list[Any]", data), where)
    if len(elements) != prod(shape):
        raise BadRequest(f"data has {len(elements)} elements, wanted {prod(shape)} for the shape", where=where)
    if len(nesting) > 1 and nesting != shape:
        raise BadRequest(f"data is nested as {list(nesting)}, shape is {list(shape)}", where=where)
    return _as_type(elements, kind, where).reshape(shape)


def as_integers(elements: list[Any], kind: DatumType, where: str) -> Array:
    """Whole numbers as the type holds them. Raises BadRequest where it cannot hold one."""
    least, most = np.iinfo(kind.numpy).min, np.iinfo(kind.numpy).max
    if elements and (min(elements) < least or max(elements) > most):
        raise BadRequest(f"data holds numbers outside {least} to {most}, which {type_name(kind)} has", where=where)
    return np.array(elements, kind.numpy)


def to_json(array: Array, where: str) -> bytes:
    """The elements as one flat list of JSON; NaN and infinities as Python writes and reads them.

    Raises BadRequest for texts that are no Unicode.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "V" or flat.dtype == np.float16:  # bf16, which NumPy knows nothing of
        flat = flat.astype(np.float32)
    if flat.size <= _PIECE:
        return _piece(flat, where)
    pieces = [_piece(flat[begin : begin + _PIECE], where)[1:-1] for begin in range(0, flat.size, _PIECE)]
    return b"[" + b",".join(pieces) + b"]"


def _piece(flat: Array, where: str) -> bytes:
    """A list of JSON of elements."""
    if flat.dtype.kind == "O":
        try:
            return orjson.dumps([text if isinstance(text, str) else text.decode() for text in flat.tolist()])
        except (UnicodeDecodeError, TypeError):  # orjson's error for halves of characters is a TypeError
            problem = "it holds bytes that are no text, which JSON cannot hold"
            raise BadRequest(problem, where=where, hint="ask for binary_data") from None
    if flat.dtype.kind == "f" and not np.isfinite(flat).all():
        return _with_nan(flat)
    return orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY)


def _with_nan(flat: Array) -> bytes:
    """The same where some are no numbers, or infinite."""
    parts = orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")
    for place in np.flatnonzero(~np.isfinite(flat)).tolist():
        value = flat[place]
        parts[place] = b"NaN" if np.isnan(value) else b"Infinity" if value > 0 else b"-Infinity"
    return b"[" + b",".join(parts) + b"]"


def _flat(data: list[Any], where: str) -> tuple[list[Any], tuple[int, ...]]:
    """The elements of a list, whose lists are all as long as their neighbours, and how it is nested."""
    nesting = [len(data)]
    while data and type(data[0]) is list:
        kinds, lengths = set(map(type, data)), set[int]()
        if len(kinds) == 1:
            lengths = set(map(len, data))
        if len(lengths) != 1 or len(nesting) == MOST_AXES:
            problem = "data is nested unevenly or too deep, wanted a flat list, or lists as the shape says"
            raise BadRequest(problem, where=where)
        nesting.append(lengths.pop())
        data = [*chain.from_iterable(data)]
    return data, tuple(nesting)


def _as_texts(elements: list[Any], kind: DatumType, where: str) -> Array:
    found: Array = np.empty(len(elements), object)
    found[:] = elements
    return found


def _as_bools(elements: list[Any], kind: DatumType, where: str) -> Array:
    return np.array(elements, np.bool_)


def _as_floats(elements: list[Any], kind: DatumType, where: str) -> Array:
    try:
        numbers = np.array(elements, np.float64)
    except OverflowError:  # of an integer that no f64 holds
        raise _too_large(kind, where) from None
    with np.errstate(over="ignore"):
        result = numbers.astype(kind.numpy)
    if bool((np.isinf(result) & np.isfinite(numbers)).any()):
        raise _too_large(kind, where)
    return result


def _too_large(kind: DatumType, where: str) -> BadRequest:
    return BadRequest(f"data holds numbers that are too large for {type_name(kind)}", where=where)


_FLOATS: Final = ({int, float}, "numbers", _as_floats)
_INTEGERS: Final = ({int}, "whole numbers", as_integers)
_OTHERS: Final = {
    DatumType.BOOL: ({bool}, "true and false", _as_bools),
    DatumType.STRING: ({str}, "texts", _as_texts),
}
"""What JSON holds for element types that are no numbers, its name, and what makes an array of it."""


def _as_type(elements: list[Any], kind: DatumType, where: str) -> Array:
    """Elements as the type holds them."""
    types, wanted, made = _OTHERS.get(kind) or (_FLOATS if kind.is_float() else _INTEGERS)
    if not set(map(type, elements)) <= types:
        raise BadRequest(f"data holds something else than {wanted}, which {type_name(kind)} has", where=where)
    return made(elements, kind, where)


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
