"""Element types: their names, their values in the established binding, and their NumPy counterparts.

A plain element type is a `DatumType`. A quantised one is a `QuantizedType`: an integer storage type together with the
zero point and the scale that give its numbers their meaning. Both answer the same questions.
"""

from __future__ import annotations

import ctypes
import re
from enum import IntEnum
from functools import cache, cached_property
from typing import Any, Final

import numpy as np

from tract_core.errors import FactError, Unsupported
from tract_core.frozen import frozen


class DatumType(IntEnum):
    """One element type. Members that the established binding has keep their values there."""

    BOOL = 0x01
    U8 = 0x11
    U16 = 0x12
    U32 = 0x14
    U64 = 0x18
    I8 = 0x21
    I16 = 0x22
    I32 = 0x24
    I64 = 0x28
    F16 = 0x32
    F32 = 0x34
    F64 = 0x38
    COMPLEX_I16 = 0x42
    COMPLEX_I32 = 0x44
    COMPLEX_I64 = 0x48
    COMPLEX_F16 = 0x52
    COMPLEX_F32 = 0x54
    COMPLEX_F64 = 0x58
    U2 = 0x110
    U4 = 0x111
    I2 = 0x120
    I4 = 0x121
    BF16 = 0x132
    F8E4M3FN = 0x140
    F8E4M3FNUZ = 0x141
    F8E5M2 = 0x142
    F8E5M2FNUZ = 0x143
    F8E8M0FNU = 0x144
    F4E2M1FN = 0x150
    STRING = 0x201
    TDIM = 0x202
    BLOB = 0x203

    def __str__(self) -> str:
        return self.name

    __hash__ = int.__hash__  # that of an Enum looks up its name each time

    @cached_property
    def short(self) -> str:
        """The lower-case name used in facts, as ``f32``."""
        return self.name.lower()

    def is_bool(self) -> bool:
        """Whether this is the boolean type."""
        return self is DatumType.BOOL

    def is_number(self) -> bool:
        """Whether arithmetic applies: integers, floats and complex numbers."""
        return self not in _NOT_NUMBERS

    def is_float(self) -> bool:
        """Whether this is a real floating-point type, of any width."""
        return self in _FLOATS

    def is_integer(self) -> bool:
        """Whether this is an integer type, signed or not, of any width."""
        return self in _SIGNED or self in _UNSIGNED

    def is_signed(self) -> bool:
        """Whether this is a signed integer type."""
        return self in _SIGNED

    def is_unsigned(self) -> bool:
        """Whether this is an unsigned integer type."""
        return self in _UNSIGNED

    def is_complex(self) -> bool:
        """Whether this is a complex type."""
        return self in _COMPLEX

    def is_quantized(self) -> bool:
        """False: see `QuantizedType`."""
        return False

    @property
    def storage(self) -> DatumType:
        """The type of the stored elements: this type itself."""
        return self

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy element type.

        Strings are held as Python objects. Raises Unsupported for types that NumPy and ml-dtypes cannot hold.
        """
        return _numpy_of(self)

    @property
    def itemsize(self) -> int:
        """Bytes that one element takes in memory (a sub-byte type takes one byte)."""
        return self.numpy.itemsize

    def ctype(self) -> type[Any]:
        """The ctypes type of one element. Raises Unsupported where C has none (half floats, complex, strings)."""
        try:
            return _CTYPES[self]
        except KeyError:
            raise Unsupported(f"{self} has no C type", hint="ask for its numpy type instead") from None

    @staticmethod
    def from_numpy(dtype: np.dtype[Any] | type[Any] | str) -> DatumType:
        """The element type that corresponds to a NumPy one. Raises FactError when there is none."""
        if isinstance(dtype, str) and dtype in _NARROW.values():
            _narrow()  # NumPy knows its name then
        return _from_numpy(np.dtype(dtype))

    @staticmethod
    def parse(text: str) -> DatumType:
        """The type of that name, in any case (``f32``, ``ComplexF32``). Raises FactError for an unknown name."""
        name = text.strip().lower()
        try:
            return _BY_NAME.get(name) or _BY_NAME[name.replace("complex", "complex_")]
        except KeyError:
            raise FactError(f"unknown element type {text!r}; known: {', '.join(sorted(_BY_NAME))}") from None


_FLOATS: Final = frozenset(t for t in DatumType if t.name.startswith(("F", "BF")))
_SIGNED: Final = frozenset(t for t in DatumType if t.name.startswith("I"))
_UNSIGNED: Final = frozenset(t for t in DatumType if t.name.startswith("U"))
_COMPLEX: Final = frozenset(t for t in DatumType if t.name.startswith("COMPLEX"))
_NOT_NUMBERS: Final = frozenset({DatumType.BOOL, DatumType.STRING, DatumType.BLOB})
_BY_NAME: Final = {t.name.lower(): t for t in DatumType}

_NUMPY: Final[dict[DatumType, Any]] = {
    DatumType.BOOL: np.bool_,
    DatumType.U8: np.uint8,
    DatumType.U16: np.uint16,
    DatumType.U32: np.uint32,
    DatumType.U64: np.uint64,
    DatumType.I8: np.int8,
    DatumType.I16: np.int16,
    DatumType.I32: np.int32,
    DatumType.I64: np.int64,
    DatumType.F16: np.float16,
    DatumType.F32: np.float32,
    DatumType.F64: np.float64,
    DatumType.COMPLEX_F32: np.complex64,
    DatumType.COMPLEX_F64: np.complex128,
    DatumType.STRING: np.object_,
    DatumType.TDIM: np.object_,
}

_NARROW: Final = {
    DatumType.U2: "uint2",
    DatumType.U4: "uint4",
    DatumType.I2: "int2",
    DatumType.I4: "int4",
    DatumType.BF16: "bfloat16",
    DatumType.F8E4M3FN: "float8_e4m3fn",
    DatumType.F8E4M3FNUZ: "float8_e4m3fnuz",
    DatumType.F8E5M2: "float8_e5m2",
    DatumType.F8E5M2FNUZ: "float8_e5m2fnuz",
    DatumType.F8E8M0FNU: "float8_e8m0fnu",
    DatumType.F4E2M1FN: "float4_e2m1fn",
}
"""What ml-dtypes calls the types that NumPy lacks: it is imported when one of them is asked for."""

_CTYPES: Final[dict[DatumType, type[Any]]] = {
    DatumType.BOOL: ctypes.c_bool,
    DatumType.U8: ctypes.c_uint8,
    DatumType.U16: ctypes.c_uint16,
    DatumType.U32: ctypes.c_uint32,
    DatumType.U64: ctypes.c_uint64,
    DatumType.I8: ctypes.c_int8,
    DatumType.I16: ctypes.c_int16,
    DatumType.I32: ctypes.c_int32,
    DatumType.I64: ctypes.c_int64,
    DatumType.F32: ctypes.c_float,
    DatumType.F64: ctypes.c_double,
}


@cache
def _numpy_of(kind: DatumType) -> np.dtype[Any]:
    if kind in _NARROW:
        return _narrow()[kind]
    try:
        return np.dtype(_NUMPY[kind])
    except KeyError:
        raise Unsupported(f"arrays of {kind} cannot be held: neither NumPy nor ml-dtypes has the type") from None


@cache
def _narrow() -> dict[DatumType, np.dtype[Any]]:
    """The types of ml-dtypes, which NumPy knows by their names from then on."""
    import ml_dtypes

    return {kind: np.dtype(getattr(ml_dtypes, name)) for kind, name in _NARROW.items()}


_OF_NUMPY: Final = {np.dtype(v): k for k, v in _NUMPY.items() if v is not np.object_}


@cache
def _from_numpy(dtype: np.dtype[Any]) -> DatumType:
    if dtype.kind in "OUT":
        return DatumType.STRING
    native = dtype.newbyteorder("=") if dtype.byteorder in "<>" else dtype
    found = _OF_NUMPY.get(native)
    if found is not None:
        return found
    others = {narrow: kind for kind, narrow in _narrow().items()}
    try:
        return others[native]
    except KeyError:
        known = ", ".join(sorted(map(str, {**_OF_NUMPY, **others})))
        raise FactError(f"no element type for NumPy's {dtype}; known: {known}") from None


@frozen
class QuantizedType:
    """Integers that stand for real numbers: ``real = (stored - zero_point) * scale``.

    ``storage``: the type of what is stored.
    """

    storage: DatumType
    zero_point: int
    scale: float

    def __post_init__(self) -> None:
        if self.storage not in (DatumType.I8, DatumType.U8, DatumType.I32):
            raise FactError(f"quantised values are stored as i8, u8 or i32, not {self.storage.short}")
        if not 0 < self.scale < float("inf"):
            raise FactError(f"the scale of quantised values is {self.scale}, wanted a positive number")

    def __str__(self) -> str:
        return f"Q{self.storage.name}(Z:{self.zero_point} S:{self.scale})"

    @property
    def name(self) -> str:
        """The text form, as ``QU8(Z:5 S:0.1)``."""
        return str(self)

    @property
    def short(self) -> str:
        """The text form used in facts: the same as `name`."""
        return str(self)

    def is_bool(self) -> bool:
        """False."""
        return False

    def is_number(self) -> bool:
        """True: a quantised value stands for a real number."""
        return True

    def is_float(self) -> bool:
        """False: the stored elements are integers."""
        return False

    def is_integer(self) -> bool:
        """False: arithmetic on the stored integers is not arithmetic on the values."""
        return False

    def is_signed(self) -> bool:
        """Whether the storage is signed."""
        return self.storage.is_signed()

    def is_unsigned(self) -> bool:
        """Whether the storage is unsigned."""
        return self.storage.is_unsigned()

    def is_complex(self) -> bool:
        """False."""
        return False

    def is_quantized(self) -> bool:
        """True."""
        return True

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type of the stored elements."""
        return self.storage.numpy

    @property
    def itemsize(self) -> int:
        """Bytes per stored element."""
        return self.storage.itemsize


PlainType = DatumType | QuantizedType
"""The type of a number, a text, or another value that holds no others."""

_QUANTIZED: Final = r"\s*Q([UI]\d+)\(Z:(-?\d+)\s+S:([^)\s]+)\)\s*"


def parse_plain(text: str) -> PlainType:
    """A plain or quantised type from its text form, as ``f32`` or ``QU8(Z:5 S:0.1)``. Raises FactError."""
    match = re.fullmatch(_QUANTIZED, text, re.IGNORECASE)
    if match is None:
        return DatumType.parse(text)
    try:
        scale = float(match[3])
    except ValueError:
        raise FactError(f"the scale of {text!r} is not a number") from None
    return QuantizedType(DatumType.parse(match[1]), int(match[2]), scale)


def widened(array: np.ndarray[Any, Any], wanted: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    """Floats in a wider type, which holds the same numbers; whatever is no narrower float as it is."""
    if wanted is None or array.dtype.hasobject or array.dtype.itemsize >= wanted.itemsize:
        return array
    floats = DatumType.from_numpy(array.dtype).is_float() and DatumType.from_numpy(wanted).is_float()
    return array.astype(wanted) if floats else array
