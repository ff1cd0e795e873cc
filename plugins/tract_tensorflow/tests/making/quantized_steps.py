"""Numbers into quantised tensors and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, file, nibbles

Case = tuple[str, bytes, list[Any]]

ENDS = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By types; numbers half way between two steps are among them."""
    for kind, (low, high) in ENDS.items():
        zero = {"INT8": -7, "UINT8": 130, "INT16": 0}[kind]
        halves = ((np.arange(-40, 41) / 2) * 0.25).astype(np.float32)
        far = np.array([0.0, -0.0, 1e4, -1e4, high - zero, low - zero], np.float32) * np.float32(0.25)
        values = np.concatenate([halves, far, draw.standard_normal(30, np.float32) * 20])
        tensors = [Tensor(values.shape), Tensor(values.shape, kind, scale=0.25, zero=zero)]
        yield f"quantize {kind}", *made("QUANTIZE", tensors, values)
        integers = np.arange(low, high + 1, 97 if kind == "INT16" else 1).astype(kind.lower())
        tensors = [Tensor(integers.shape, kind, scale=0.037, zero=zero), Tensor(integers.shape)]
        yield f"dequantize {kind}", *made("DEQUANTIZE", tensors, integers)
        for to, scale, to_zero in (("INT8", 0.05, 11), ("UINT8", 0.037, 9), ("INT16", 0.0009, 0), ("INT8", 0.037, 3)):
            if kind == "INT16" and to == "UINT8":
                continue
            tensors = [
                Tensor(integers.shape, kind, scale=0.037 if kind != "INT16" else 0.0003, zero=zero),
                Tensor(integers.shape, to, scale=scale, zero=to_zero),
            ]
            yield f"requantize {kind} to {to} {scale}", *made("QUANTIZE", tensors, integers)
    words = draw.integers(-32768, 32768, (3, 50)).astype(np.int16)
    tensors = [Tensor(words.shape, "INT16", scale=0.003, zero=0), Tensor(words.shape, "INT32", scale=0.0004, zero=0)]
    yield "requantize INT16 to INT32", *made("QUANTIZE", tensors, words)
    wide = draw.integers(-(2**20), 2**20, (3, 50)).astype(np.int32)
    for to in ("INT8", "INT16"):
        tensors = [Tensor(wide.shape, "INT32", scale=0.0004, zero=0), Tensor(wide.shape, to, scale=0.7, zero=0)]
        yield f"requantize INT32 to {to}", *made("QUANTIZE", tensors, wide)
    channels = draw.integers(-128, 128, (2, 5, 3)).astype(np.int8)
    tensors = [
        Tensor(channels.shape, "INT8", scale=[0.1, 0.02, 0.5], zero=[0, 0, 0], axis=2),
        Tensor(channels.shape),
    ]
    yield "dequantize INT8 per channel", *made("DEQUANTIZE", tensors, channels)
    for name, data in (("odd", [[-8, 7, 3], [1, 0, -1], [2, -3, 5]]), ("even", [[-8, 7, 3, 2], [1, 0, -1, -5]])):
        constant = nibbles(data, scale=0.3, zero=0)
        tensors = [constant, Tensor(constant.shape), Tensor((1,)), Tensor(constant.shape)]
        ops = [Op("DEQUANTIZE", [0], [1], "DequantizeOptions"), Op("MUL", [1, 2], [3], "MulOptions")]
        yield f"dequantize INT4 {name}", file(Graph(tensors, ops, [2], [1])), [np.array([1.5], np.float32)]


def made(name: str, tensors: list[Tensor], values: Any) -> tuple[bytes, list[Any]]:
    """A file of one operator."""
    return file(Graph(tensors, [Op(name, [0], [1], f"{name.title()}Options")], [0], [1])), [values]
