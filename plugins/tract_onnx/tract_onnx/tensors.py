"""From tensors as ONNX files hold them to arrays. Large ones are read in place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import numpy as np
import onnx

from tract_core.data import Constant, DatumType
from tract_core.data.stored import BITS, byte_count, checked_shape, from_bytes, unpack
from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported
from tract_core.frontend.external import ExternalFiles
from tract_core.frontend.unfolded import Unfolded
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.lookalikes import HEAD, recognise
from tract_core.plugins.keys import Array
from tract_onnx import external
from tract_onnx.long_lists import Buffer, LongList, Run
from tract_onnx.wire_format import Skeleton

T = TypeVar("T")

UNPACKED: Final = 8
"""Bytes in memory that each byte of a file may become: booleans and narrow types are unpacked."""

POINTER: Final = 8
"""Bytes that each element of a Python list takes at least."""

ELEMENT_TYPES: Final[Mapping[int, DatumType]] = {
    onnx.TensorProto.FLOAT: DatumType.F32,
    onnx.TensorProto.UINT8: DatumType.U8,
    onnx.TensorProto.INT8: DatumType.I8,
    onnx.TensorProto.UINT16: DatumType.U16,
    onnx.TensorProto.INT16: DatumType.I16,
    onnx.TensorProto.INT32: DatumType.I32,
    onnx.TensorProto.INT64: DatumType.I64,
    onnx.TensorProto.STRING: DatumType.STRING,
    onnx.TensorProto.BOOL: DatumType.BOOL,
    onnx.TensorProto.FLOAT16: DatumType.F16,
    onnx.TensorProto.DOUBLE: DatumType.F64,
    onnx.TensorProto.UINT32: DatumType.U32,
    onnx.TensorProto.UINT64: DatumType.U64,
    onnx.TensorProto.COMPLEX64: DatumType.COMPLEX_F32,
    onnx.TensorProto.COMPLEX128: DatumType.COMPLEX_F64,
    onnx.TensorProto.BFLOAT16: DatumType.BF16,
    onnx.TensorProto.FLOAT8E4M3FN: DatumType.F8E4M3FN,
    onnx.TensorProto.FLOAT8E4M3FNUZ: DatumType.F8E4M3FNUZ,
    onnx.TensorProto.FLOAT8E5M2: DatumType.F8E5M2,
    onnx.TensorProto.FLOAT8E5M2FNUZ: DatumType.F8E5M2FNUZ,
    onnx.TensorProto.UINT4: DatumType.U4,
    onnx.TensorProto.INT4: DatumType.I4,
    23: DatumType.F4E2M1FN,  # by number from here on: older releases of the onnx package have no names for them
    24: DatumType.F8E8M0FNU,
    25: DatumType.U2,
    26: DatumType.I2,
}

_FIELDS: Final = {
    DatumType.F32: "float_data",
    DatumType.COMPLEX_F32: "float_data",
    DatumType.F64: "double_data",
    DatumType.COMPLEX_F64: "double_data",
    DatumType.I64: "int64_data",
    DatumType.U32: "uint64_data",
    DatumType.U64: "uint64_data",
    DatumType.STRING: "string_data",
}
"""The field that holds the elements when they are not raw bytes; for the other types it is ``int32_data``."""


def element_type(code: int) -> DatumType:
    """The element type of that number. Raises Unsupported, with the known ones."""
    try:
        return ELEMENT_TYPES[code]
    except KeyError:
        known = ", ".join(kind.short for kind in ELEMENT_TYPES.values())
        raise Unsupported(f"element type number {code} is not known; known are {known}") from None


class TensorReader:
    """Reads the tensors of one file. ``buffer``: the file; ``skeleton``: what the scan of it gave.

    Tensors that are views of the file take no memory, however many of them lie in one place. Those that are copies,
    as they are unpacked, may at any one time together take some times what the files have, and ``max_fold_bytes`` more.
    """

    def __init__(
        self, buffer: Buffer, skeleton: Skeleton, files: ExternalFiles, limits: LoadLimits = DEFAULT_LIMITS
    ) -> None:
        self._buffer = buffer
        self._skeleton = skeleton
        self._files = files
        self._limits = limits
        # What it may take is told without this reader: in a circle, the file would stay mapped until it is collected.
        self._unfolded = Unfolded(lambda: limits.max_fold_bytes + UNPACKED * (len(buffer) + files.stored))

    def array(self, tensor: onnx.TensorProto) -> Array:
        """A tensor's elements; a view of the file where they are many.

        Raises CorruptModel, Unsupported or UnsafePath, with the tensor's name.
        """
        try:
            return self._array(tensor)
        except TractError as error:
            raise error.at(f"tensor {tensor.name[:200]!r}") from None

    def sparse(self, sparse: onnx.SparseTensorProto) -> Array:
        """A tensor that is zero but for a few elements, unfolded."""
        try:
            return self._sparse(sparse)
        except TractError as error:
            raise error.at(f"sparse tensor {sparse.values.name[:200]!r}") from None

    def run(self, attribute: onnx.AttributeProto) -> Run | None:
        """Where the list of an attribute is that was left in the file; ``None`` for one that was not."""
        return self._skeleton.run(attribute.s)

    def long_list(self, attribute: onnx.AttributeProto) -> LongList | None:
        """The list of an attribute that was left in the file; ``None`` for one that was not."""
        run = self.run(attribute)
        return None if run is None else LongList(self._buffer, run)

    def numbers(self, left: LongList) -> Array:
        """The elements of a list that was left in the file. Raises LimitExceeded when they take too much memory."""
        return self._unfolded.shared(left.run, left.run.elements * left.itemsize, left.numbers)

    def distinct_texts(self, left: LongList) -> tuple[list[bytes], Array]:
        """The distinct texts of a list that was left in the file, and the place of each element's among them.

        Raises LimitExceeded when these take too much memory.
        """
        texts: list[bytes] = []

        def places() -> Array:
            texts[:], found = left.distinct_texts()
            return found

        return texts, self._unfolded.counted(left.run.elements * left.itemsize, places)

    def listed(self, left: LongList, make: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
        """A list that was left in the file, as ``make`` makes it of the elements. Raises LimitExceeded."""
        return self._unfolded.kept(left.run, left.run.elements * POINTER, make)

    def _array(self, tensor: onnx.TensorProto) -> Array:
        kind = element_type(tensor.data_type)
        shape = checked_shape(tensor.dims, self._limits)
        self._check_size(kind, shape, sum(map(len, tensor.string_data)))
        if tensor.HasField("segment"):
            raise Unsupported("it is stored in segments, a form that the format has given up")
        is_external = tensor.data_location == onnx.TensorProto.EXTERNAL
        is_raw = tensor.HasField("raw_data")
        typed = _typed_fields(tensor)
        if is_external + is_raw + bool(typed) > 1:
            raise CorruptModel("its elements are given more than once: raw, typed or external data exclude each other")
        if is_external:
            return self._external(tensor, kind, shape)
        if is_raw:
            region = self._skeleton.region(tensor.raw_data)
            if region is None:
                return from_bytes(kind, shape, tensor.raw_data, 0, len(tensor.raw_data))
            return self._from_region(kind, shape, self._buffer, *region)
        return _from_typed(tensor, kind, shape, typed)

    def _external(self, tensor: onnx.TensorProto, kind: DatumType, shape: tuple[int, ...]) -> Array:
        said = external.entries(tensor.external_data)
        if "location" not in said:
            raise CorruptModel("its data is external, and the file's name is missing")
        content = self._files.open(said["location"], said.get("checksum"))
        offset = external.number(said, "offset") or 0
        given = external.number(said, "length")
        length = byte_count(kind, shape) if given is None else given
        if offset + length > len(content):
            found = recognise(content[:HEAD])
            raise CorruptModel(
                f"its {length} bytes at offset {offset} go beyond the {len(content)} bytes of {said['location']!r}"
                + (f", which is {found.what}" if found else ""),
                hint=found.advice if found else "the file of external data is truncated, or belongs to another model",
            )
        return self._from_region(kind, shape, content, offset, length)

    def _check_size(self, kind: DatumType, shape: tuple[int, ...], texts: int) -> None:
        size = math.prod(shape) * kind.itemsize + texts
        if size > self._limits.max_tensor_bytes:
            raise LimitExceeded(
                f"{kind.short} of shape {list(shape)} takes {size} bytes, {self._limits.max_tensor_bytes} are allowed",
                hint="a model that needs so many can be loaded with LoadLimits(max_tensor_bytes=...)",
            )

    def _from_region(self, kind: DatumType, shape: tuple[int, ...], content: Buffer, offset: int, length: int) -> Array:
        if (kind in BITS or kind is DatumType.BOOL) and byte_count(kind, shape) == length:
            part = (id(content), offset, length, kind, shape)  # the file holds its contents as long as it is there
            size = math.prod(shape) * kind.itemsize
            return self._unfolded.shared(part, size, lambda: from_bytes(kind, shape, content, offset, length))
        return from_bytes(kind, shape, content, offset, length)

    def _sparse(self, sparse: onnx.SparseTensorProto) -> Array:
        values, indices = self._array(sparse.values), self._array(sparse.indices)
        shape = checked_shape(sparse.dims, self._limits)
        size = math.prod(shape)
        if values.ndim != 1 or indices.dtype != np.int64 or indices.ndim not in (1, 2) or len(indices) != len(values):
            raise CorruptModel(f"values of shape {values.shape} do not go with indices of shape {indices.shape}")
        if indices.ndim == 2 and indices.shape[1] != len(shape):
            raise CorruptModel(f"indices of shape {indices.shape} do not go with {len(shape)} axes")
        limits = np.array(shape if indices.ndim == 2 else size)
        if ((indices < 0) | (indices >= limits)).any():
            raise CorruptModel(f"an index is outside the shape {shape}")
        part = (Constant(values), Constant(indices), shape)
        return self._unfolded.shared(part, size * values.itemsize, lambda: _dense(values, indices, shape))


def _dense(values: Array, indices: Array, shape: tuple[int, ...]) -> Array:
    """Zeros, but for ``values``: at places in row-major order, or at coordinates."""
    dense = np.zeros(shape, values.dtype)
    places = np.ravel_multi_index(tuple(indices.T), shape) if indices.ndim == 2 and shape else indices.ravel()
    dense.reshape(-1)[places] = values
    return dense


def _typed_fields(tensor: onnx.TensorProto) -> list[str]:
    return [field for field in {*_FIELDS.values(), "int32_data"} if len(getattr(tensor, field))]


def _from_typed(tensor: onnx.TensorProto, kind: DatumType, shape: tuple[int, ...], typed: list[str]) -> Array:
    field = _FIELDS.get(kind, "int32_data")
    if typed not in ([], [field]):
        raise CorruptModel(f"elements of type {kind.short} belong in {field}, found {', '.join(typed)}")
    values = getattr(tensor, field)
    flat = _CONVERSIONS.get(field, _from_int32)(kind, values)
    if kind in BITS:
        if len(flat) != byte_count(kind, shape):
            raise _wrong_count(kind, shape, len(flat), byte_count(kind, shape))
        return unpack(kind, shape, flat)
    if len(flat) != math.prod(shape):
        raise _wrong_count(kind, shape, len(flat), math.prod(shape))
    return flat.reshape(shape)


def _wrong_count(kind: DatumType, shape: tuple[int, ...], found: int, wanted: int) -> CorruptModel:
    listed = ",".join(map(str, shape))
    return CorruptModel(f"{found} elements are there, {kind.short} of shape [{listed}] takes {wanted}")


def _from_floats(kind: DatumType, values: Any) -> Array:
    is_single = kind in (DatumType.F32, DatumType.COMPLEX_F32)
    single = np.fromiter(values, np.float32 if is_single else np.float64, len(values))
    if kind.is_complex() and len(single) % 2:
        raise CorruptModel(f"{len(single)} numbers are there, complex elements take two each")
    return single.view(kind.numpy)


def _from_integers(kind: DatumType, values: Any) -> Array:
    return np.fromiter(values, np.int64 if kind.is_signed() else np.uint64, len(values)).astype(kind.numpy)


def _from_int32(kind: DatumType, values: Any) -> Array:
    """Small integers are stored as they are; the bits of narrow floats and of packed types as a number."""
    wide = np.fromiter(values, np.int32, len(values))
    if kind in BITS:
        return wide.astype(np.uint8)
    if kind.is_float():
        return wide.astype(np.uint16 if kind.itemsize == 2 else np.uint8).view(kind.numpy)
    return wide.astype(kind.numpy)


def _from_strings(kind: DatumType, values: Any) -> Array:
    flat = np.empty(len(values), dtype=object)
    try:
        flat[:] = [value.decode() for value in values]
    except UnicodeDecodeError as error:
        raise CorruptModel(f"a string is not UTF-8: {error.reason} at byte {error.start}") from None
    return flat


_CONVERSIONS: Final[Mapping[str, Callable[[DatumType, Any], Array]]] = {
    "float_data": _from_floats,
    "double_data": _from_floats,
    "int64_data": _from_integers,
    "uint64_data": _from_integers,
    "string_data": _from_strings,
}
