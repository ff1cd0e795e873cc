"""Files of one operator, from the arrays that it reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from model import DTYPES, Graph, Op, Tensor, const, file

Case = tuple[str, bytes, list[Any]]

SCALED = {"INT8": (0.05, -7), "UINT8": (0.04, 120), "INT16": (0.0002, 0)}
"""Scale and zero point of tensors that stand for numbers."""


def single(
    name: str,
    inputs: Sequence[Any],
    outputs: str | Sequence[str] = "FLOAT32",
    options: tuple[str, dict[str, Any]] | None = None,
    *,
    fixed: Collection[int] = (),
    opened: Collection[int] = (),
    scaled: bool = False,
    ranks: int | Sequence[int] = 1,
    version: int = 1,
    shape: tuple[int, ...] | None = None,
) -> tuple[bytes, list[Any]]:
    """The file, and what it is given.

    ``inputs``: arrays, or ``None`` for one left out; ``outputs``: types. ``fixed``: which inputs are constants,
    ``opened``: which have sizes that the file does not know. ``scaled``: whether integers of 8 and 16 bits stand for
    numbers. ``ranks``: of the outputs. ``version``: of the operator, where 1 is not known any more. ``shape``: of the
    outputs, where the kernel wants to find the right one.
    """
    kinds = [outputs] if isinstance(outputs, str) else list(outputs)
    tensors: list[Tensor] = []
    places: list[int] = []
    given: list[int] = []
    for slot, value in enumerate(inputs):
        if value is None:
            places.append(-1)
            continue
        places.append(len(tensors))
        tensors.append(_input(np.asarray(value), slot in fixed, slot in opened))
        if slot not in fixed:
            given.append(slot)
    results = range(len(tensors), len(tensors) + len(kinds))
    each = [ranks] * len(kinds) if isinstance(ranks, int) else ranks
    tensors += [Tensor(shape or (1,) * rank, kind) for kind, rank in zip(kinds, each, strict=True)]
    for tensor in tensors if scaled else ():
        if tensor.type in SCALED:
            tensor.scale, tensor.zero = SCALED[tensor.type]
    table, said = options or ("", {})
    op = Op(name, places, list(results), table, said, version=version)
    content = file(Graph(tensors, [op], [places[slot] for slot in given], list(results)))
    return content, [np.asarray(inputs[slot]) for slot in given]


def _input(value: Any, is_fixed: bool, is_open: bool) -> Tensor:
    kind = type_of(value)
    if is_fixed:
        return const(value, kind, raw=texts_raw(value) if kind == "STRING" else None)
    return Tensor(value.shape, kind, signature=(-1,) * value.ndim if is_open else None)


def type_of(value: Any) -> str:
    """What the schema calls the type of an array."""
    if value.dtype.kind in "SO":
        return "STRING"
    return next(name for name, one in DTYPES.items() if value.dtype == one)


def texts_raw(value: Any) -> bytes:
    """Texts as a constant holds them."""
    texts = [bytes(text) for text in value.reshape(-1).tolist()]
    places = np.cumsum([4 * (len(texts) + 2), *map(len, texts)])
    return b"".join([np.array([len(texts), *places], "<i4").tobytes(), *texts])


def numbers(draw: np.random.Generator, kind: str, shape: tuple[int, ...], most: int = 100) -> Any:
    """Numbers of a type: floats around 0, integers up to ``most``, the ends of their type among them."""
    dtype = np.dtype(DTYPES[kind])
    if dtype.kind == "b":
        return draw.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind == "O":
        return np.array([f"text {n}" for n in draw.integers(0, 4, shape).reshape(-1)], np.bytes_).reshape(shape)
    if dtype.kind == "f":
        return (3 * draw.standard_normal(shape)).astype(dtype)
    if dtype.kind == "c":
        return (draw.standard_normal(shape) + 1j * draw.standard_normal(shape)).astype(dtype)
    ends = np.iinfo(dtype)
    low, high = max(-most, ends.min), min(most, ends.max)
    return draw.integers(low, high + 1, shape).astype(dtype)


def with_ends(values: Any) -> Any:
    """The same with the ends of the type, and for floats what is no number, in the first places."""
    flat = values.reshape(-1).copy()
    kind = flat.dtype
    if kind.kind == "f":
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, -2.5]
    else:
        ends = np.iinfo(kind)
        special = [ends.min, ends.max, 0]
    count = min(len(special), flat.size)
    flat[:count] = np.array(special, kind)[:count]
    return flat.reshape(values.shape)
