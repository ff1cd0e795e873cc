"""Weights in four bits or a byte, with scales by blocks of the last axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file, nibbles

Case = tuple[str, bytes, list[Any]]

ROWS, COLUMNS = 5, 64

EXPECTED: dict[str, Any] = {}


def expected(name: str) -> list[Any] | None:
    """What NumPy computes; ``None`` where LiteRT does."""
    return [EXPECTED[name]] if name in EXPECTED else None


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """Rows of tables, and products, whose reference kernel does not see the scales."""
    for size in (32, 16, 64):
        weights, scales, floats = table(draw, size)
        places = np.array([4, 0, 3, 3], np.int32)
        tensors = [Tensor((4,), "INT32"), nibbles(weights, blocks=(2, 0, size)), scales, Tensor((4, COLUMNS))]
        yield (f"rows in blocks of {size}", file(lookup(tensors)), [places])
    for size in (32, 64):
        for kind in ("INT4", "INT8"):
            weights, scales, floats = table(draw, size, kind)
            held = nibbles(weights) if kind == "INT4" else const(weights, "INT8")
            held.blocks = (2, 0, size)
            x, name = draw.standard_normal((3, COLUMNS), np.float32), f"products of {kind} in blocks of {size}"
            EXPECTED[name] = (x.astype(np.float64) @ floats.T).astype(np.float32)
            tensors = [Tensor((3, COLUMNS)), held, scales, Tensor((3, ROWS))]
            yield (name, file(product(tensors)), [x])
    weights, scales, floats = table(draw, 32)
    zeros = draw.integers(-3, 4, (ROWS, 2))
    floats = (weights - np.repeat(zeros, 32, 1)) * np.repeat(np.asarray(scales.data, np.float64), 32, 1)
    x = draw.standard_normal((1, COLUMNS), np.float32)
    tensors = [
        Tensor((1, COLUMNS)),
        nibbles(weights, blocks=(2, 3, 32)),
        scales,
        const(zeros, "INT8"),
        Tensor((1, ROWS)),
    ]
    EXPECTED["products with zero points"] = (x.astype(np.float64) @ floats.T).astype(np.float32)
    op = Op("FULLY_CONNECTED", [0, 1, -1], [4], "FullyConnectedOptions", {})
    yield ("products with zero points", file(Graph(tensors, [op], [0], [4])), [x])


def table(draw: np.random.Generator, size: int, kind: str = "INT4") -> tuple[Any, Tensor, Any]:
    """Integers, the scales of their blocks in halves, and the numbers that they stand for."""
    low, high = (-8, 8) if kind == "INT4" else (-128, 128)
    weights = draw.integers(low, high, (ROWS, COLUMNS))
    scales = draw.uniform(0.01, 0.1, (ROWS, COLUMNS // size)).astype(np.float16)
    return weights, const(scales), weights * np.repeat(scales.astype(np.float64), size, 1)


def lookup(tensors: list[Tensor]) -> Graph:
    return Graph(tensors, [Op("EMBEDDING_LOOKUP", [0, 1], [3])], [0], [3])


def product(tensors: list[Tensor]) -> Graph:
    return Graph(tensors, [Op("FULLY_CONNECTED", [0, 1, -1], [3], "FullyConnectedOptions", {})], [0], [3])
