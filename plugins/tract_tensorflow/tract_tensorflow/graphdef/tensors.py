"""From tensors as TensorFlow's messages hold them to arrays, and what they say of element types and shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.data.stored import check_rank, checked_shape, from_bytes
from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported
from tract_core.frontend.unfolded import Unfolded
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, limits_now
from tract_core.model.fact import InferenceFact
from tract_core.plugins.keys import Array
from tract_tensorflow.graphdef.protos import Message

UNFOLDED: Final = 8
"""Bytes in memory that each byte of a file may become: values that repeat are written once."""

ELEMENT_TYPES: Final[Mapping[int, DatumType]] = {
    1: DatumType.F32,
    2: DatumType.F64,
    3: DatumType.I32,
    4: DatumType.U8,
    5: DatumType.I16,
    6: DatumType.I8,
    7: DatumType.STRING,
    8: DatumType.COMPLEX_F32,
    9: DatumType.I64,
    10: DatumType.BOOL,
    11: DatumType.I8,  # the quantised ones are those that hold them: operators have the scales beside them
    12: DatumType.U8,
    13: DatumType.I32,
    14: DatumType.BF16,
    15: DatumType.I16,
    16: DatumType.U16,
    17: DatumType.U16,
    18: DatumType.COMPLEX_F64,
    19: DatumType.F16,
    22: DatumType.U32,
    23: DatumType.U64,
    24: DatumType.F8E5M2,
    25: DatumType.F8E4M3FN,
}

RESOURCE: Final = 20
"""The number of the type of handles: of variables, tables and the like."""

VARIANT: Final = 21
"""The number of the type of lists of tensors."""

_NAMES: Final = {RESOURCE: "handles of resources", VARIANT: "variants"}

_FIELDS: Final[Mapping[DatumType, str]] = {
    DatumType.F32: "float_val",
    DatumType.F64: "double_val",
    DatumType.I64: "int64_val",
    DatumType.U32: "uint32_val",
    DatumType.U64: "uint64_val",
    DatumType.BOOL: "bool_val",
    DatumType.F16: "half_val",
    DatumType.BF16: "half_val",
    DatumType.STRING: "string_val",
    DatumType.COMPLEX_F32: "scomplex_val",
    DatumType.COMPLEX_F64: "dcomplex_val",
}
"""The field that holds the elements when they are not raw bytes; for the other types it is ``int_val``."""

_STORED: Final[Mapping[str, Any]] = {
    "float_val": np.float32,
    "double_val": np.float64,
    "int64_val": np.int64,
    "uint32_val": np.uint32,
    "uint64_val": np.uint64,
    "bool_val": np.bool_,
    "half_val": np.int32,
    "scomplex_val": np.float32,
    "dcomplex_val": np.float64,
    "int_val": np.int32,
}


def element_type(code: int) -> DatumType:
    """The element type of that number; that of what a reference refers to. Raises Unsupported, with the known ones."""
    number = code - 100 if code > 100 else code
    if number in _NAMES:
        raise Unsupported(f"{_NAMES[number]} are wanted as a tensor")
    try:
        return ELEMENT_TYPES[number]
    except KeyError:
        known = ", ".join(dict.fromkeys(kind.short for kind in ELEMENT_TYPES.values()))
        raise Unsupported(f"element type number {code} is not known; known are {known}") from None


def sizes_of(shape: Message) -> tuple[int | None, ...] | None:
    """The sizes that a message of a shape holds, ``None`` for one that is not known; ``None`` for an unknown rank.

    Raises CorruptModel for a size below -1, LimitExceeded for too many of them.
    """
    if shape.unknown_rank:
        return None
    check_rank(len(shape.dim), limits_now())
    sizes = [int(dim.size) for dim in shape.dim]
    if min(sizes, default=0) < -1:
        raise CorruptModel(f"its shape {sizes} has a negative size")
    return tuple(None if size == -1 else size for size in sizes)


def fact_of(code: int, shape: Message | None) -> InferenceFact:
    """What a file says of a tensor. ``shape``: ``None`` where it says nothing of it. Raises ModelError."""
    kind = element_type(code) if code else None
    return InferenceFact(kind, None if shape is None else sizes_of(shape))


class TensorReader:
    """Reads the tensors of one file, of ``size`` bytes. Those with a key are read once, as long as somebody has them.

    Together they may take some times what the file has, and ``max_fold_bytes`` more.
    """

    def __init__(self, size: int, limits: LoadLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._unfolded = Unfolded(lambda: limits.max_fold_bytes + UNFOLDED * size)

    def array(self, tensor: Message, key: Hashable, place: str) -> Array:
        """A tensor's elements. ``key``: tells it from all others. Raises ModelError, where it is in ``place``."""
        try:
            kind = element_type(tensor.dtype)
            if tensor.tensor_shape.unknown_rank:
                raise CorruptModel("the rank of a constant is not given")
            shape = checked_shape((dim.size for dim in tensor.tensor_shape.dim), self._limits)
            size = math.prod(shape) * kind.itemsize + sum(map(len, tensor.string_val))
            if size > self._limits.max_tensor_bytes:
                raise LimitExceeded(
                    f"{kind.short} of shape {list(shape)} takes {size} bytes, {self._limits.max_tensor_bytes} are"
                    " allowed",
                    hint="a model that needs so many can be loaded with LoadLimits(max_tensor_bytes=...)",
                )
            return self._unfolded.shared(key, size, lambda: _array(tensor, kind, shape))
        except TractError as error:
            raise error.at(place) from None


def _array(tensor: Message, kind: DatumType, shape: tuple[int, ...]) -> Array:
    field = _FIELDS.get(kind, "int_val")
    values, content = getattr(tensor, field), tensor.tensor_content
    if content:
        if len(values):
            raise CorruptModel("its elements are given twice, as bytes and as values")
        return from_bytes(kind, shape, content, 0, len(content))
    if kind in (DatumType.F8E5M2, DatumType.F8E4M3FN):
        return from_bytes(kind, shape, tensor.float8_val, 0, len(tensor.float8_val))
    flat = _read(kind, field, values)
    count = math.prod(shape)
    if len(flat) > count:
        listed = ",".join(map(str, shape))
        raise CorruptModel(f"{len(flat)} elements are there, {kind.short} of shape [{listed}] takes {count}")
    full = np.empty(count, kind.numpy)
    full[: len(flat)] = flat
    # The last one is repeated; where there is none, it is 0.
    full[len(flat) :] = flat[-1] if len(flat) else _zero(kind)
    return full.reshape(shape)


def _zero(kind: DatumType) -> Any:
    return "" if kind is DatumType.STRING else np.zeros((), kind.numpy)


def _read(kind: DatumType, field: str, values: Any) -> Array:
    if kind is DatumType.STRING:
        flat = np.empty(len(values), dtype=object)
        flat[:] = [_text(value) for value in values]
        return flat
    stored = np.fromiter(values, _STORED[field], len(values))
    return _CONVERSIONS.get(field, lambda kind, stored: stored.astype(kind.numpy))(kind, stored)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Unsupported(f"a string is not UTF-8: {error.reason} at byte {error.start}") from None


def _complex(kind: DatumType, stored: Array) -> Array:
    if len(stored) % 2:
        raise CorruptModel(f"{len(stored)} numbers are there, complex elements take two each")
    return stored.view(kind.numpy)


_CONVERSIONS: Final[Mapping[str, Callable[[DatumType, Array], Array]]] = {
    "half_val": lambda kind, stored: stored.astype(np.uint16).view(kind.numpy),
    "scomplex_val": _complex,
    "dcomplex_val": _complex,
}
