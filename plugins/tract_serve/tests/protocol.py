"""What the tests of both protocols share: a repository with a model for each element type, and values for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto
from servers import identity, put, slow, sum_and_difference

Array = np.ndarray[Any, Any]

KINDS: dict[str, tuple[int, Any]] = {
    "BOOL": (TensorProto.BOOL, np.bool_),
    "UINT8": (TensorProto.UINT8, np.uint8),
    "UINT16": (TensorProto.UINT16, np.uint16),
    "UINT32": (TensorProto.UINT32, np.uint32),
    "UINT64": (TensorProto.UINT64, np.uint64),
    "INT8": (TensorProto.INT8, np.int8),
    "INT16": (TensorProto.INT16, np.int16),
    "INT32": (TensorProto.INT32, np.int32),
    "INT64": (TensorProto.INT64, np.int64),
    "FP16": (TensorProto.FLOAT16, np.float16),
    "FP32": (TensorProto.FLOAT, np.float32),
    "FP64": (TensorProto.DOUBLE, np.float64),
    "BF16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "BYTES": (TensorProto.STRING, np.object_),
}
"""Element types of the protocol, of ONNX and of NumPy."""

SHAPES: tuple[tuple[int, ...], ...] = ((2, 3), (1, 1), (0, 3), (2, 0))

TEXTS = [b"", b"plain", "größer €😀".encode(), b"line\nend\x00zero", b"\xff\xfe no text \x80", b"x" * 300]


def values(datatype: str, shape: tuple[int, ...]) -> Array:
    """Elements that programs stumble over, among others."""
    count = int(np.prod(shape))
    kind = KINDS[datatype][1]
    if datatype == "BYTES":
        found = np.empty(count, object)
        found[:] = [TEXTS[number % len(TEXTS)] for number in range(count)]
        return found.reshape(shape)
    if datatype == "BOOL":
        return (np.arange(count) % 2 == 0).reshape(shape)
    if np.dtype(kind).kind in "iu":
        ends = [np.iinfo(kind).max, np.iinfo(kind).min, 0, 1, 7]
        return np.array([ends[number % 5] for number in range(count)], kind).reshape(shape)
    ends = [np.nan, np.inf, -np.inf, -0.0, 1.5, float(ml_dtypes.finfo(kind).max), float(ml_dtypes.finfo(kind).tiny)]
    return np.array([ends[number % 7] for number in range(count)]).astype(kind).reshape(shape)


def same(found: Any, wanted: Array) -> None:
    """Check that two arrays are equal, bit for bit."""
    assert found.shape == wanted.shape
    if wanted.dtype == object:
        assert [_bytes(one) for one in found.reshape(-1)] == [_bytes(one) for one in wanted.reshape(-1)]
    else:
        assert np.ascontiguousarray(found).tobytes() == wanted.tobytes()


def _bytes(text: Any) -> bytes:
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)


def repository(folder: Path) -> Path:
    """A repository with ``any_FP32`` and so on, of two axes; ``scalar_FP32`` of none; and models for other calls."""
    for name, (kind, _) in KINDS.items():
        put(folder, f"any_{name}", identity(kind))
    for name in ("FP32", "INT64", "BYTES"):
        put(folder, f"scalar_{name}", identity(KINDS[name][0], ()))
    put(folder, "two", sum_and_difference(), config="version_policy { all {} }")
    put(folder, "two", sum_and_difference(), version=3)
    put(folder, "slow", slow())
    put(folder, "row", identity(TensorProto.FLOAT, ("N", 4)))
    put(
        folder,
        "ranked",
        identity(TensorProto.FLOAT, ("N", 4)),
        config="max_batch_size: 8 dynamic_batching { priority_levels: 3 default_priority_level: 2 }",
    )
    return folder
