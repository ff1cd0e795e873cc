"""Which element types MLX has, and arrays of NumPy as arrays of MLX and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import ml_dtypes
import mlx.core as mx
import numpy as np

from tract_core.data import Container, DatumType, DType
from tract_core.plugins.keys import Array

_TYPES: Final[Mapping[DatumType, mx.Dtype]] = {
    DatumType.BOOL: mx.bool_,
    DatumType.U8: mx.uint8,
    DatumType.U16: mx.uint16,
    DatumType.U32: mx.uint32,
    DatumType.U64: mx.uint64,
    DatumType.I8: mx.int8,
    DatumType.I16: mx.int16,
    DatumType.I32: mx.int32,
    DatumType.I64: mx.int64,
    DatumType.F16: mx.float16,
    DatumType.BF16: mx.bfloat16,
    DatumType.F32: mx.float32,
    DatumType.COMPLEX_F32: mx.complex64,
}
"""Those that all devices of MLX compute with: it has f64 on the processor only."""

HALVES: Final = (mx.float16, mx.bfloat16)
"""Floats that are computed in f32, and rounded once."""


def element_of(kind: DType | Container) -> mx.Dtype | None:
    """What elements of a type are in MLX, those of a quantised type as they are stored; ``None`` where it has none."""
    return None if isinstance(kind, Container) else _TYPES.get(kind.storage)


def to_mlx(array: Array) -> mx.array:
    """The same elements in memory of MLX: a copy that is there, as of what is to be computed only its thread knows."""
    if array.dtype != ml_dtypes.bfloat16:
        return mx.array(array)
    found = mx.view(mx.array(array.view(np.uint16)), mx.bfloat16)
    mx.eval(found)
    return found


def written_in(array: Array) -> mx.array:
    """The same elements, for use in what MLX records, by the thread that has it recorded.

    MLX writes an array of one element that it knows into its kernels, as a text, in which -0.0 loses its sign: here
    such an array is a part of a longer one, which it has to read.
    """
    if array.size != 1:
        return to_mlx(np.ascontiguousarray(array))
    return mx.reshape(to_mlx(np.repeat(array.reshape(-1), 2))[:1], array.shape)


def to_numpy(array: mx.array) -> Array:
    """The same elements in memory of NumPy, row by row; a copy. Waits until they are computed."""
    if array.dtype == mx.bfloat16:
        return np.array(mx.view(array, mx.uint16)).view(ml_dtypes.bfloat16)
    return np.array(array)


def wide(array: mx.array) -> mx.array:
    """In the type in which it is computed: f32 for narrower floats, else as it is."""
    return array.astype(mx.float32) if array.dtype in HALVES else array
