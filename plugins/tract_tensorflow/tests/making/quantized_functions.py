"""Functions of one quantised tensor: of every byte, and of 16-bit numbers of which some are taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, file

Case = tuple[str, bytes, list[Any]]

ENDS = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}
NAMES = [
    "NEG", "EXP", "LOG", "SQRT", "RSQRT", "ABS", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "GELU", "HARD_SWISH",
    "LEAKY_RELU", "LOGISTIC", "TANH", "ELU",
]  # fmt: skip
TABLES = {
    "NEG": "NegOptions", "EXP": "ExpOptions", "ABS": "AbsOptions", "GELU": "GeluOptions",
    "HARD_SWISH": "HardSwishOptions", "LEAKY_RELU": "LeakyReluOptions",
}  # fmt: skip
ONLY_BYTES = {"ELU", "RELU_N1_TO_1", "RELU_0_TO_1", "HARD_SWISH"}
NO_UNSIGNED = {"ELU", "NEG", "EXP", "LOG", "SQRT", "RSQRT", "ABS"}


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By function, type, and two pairs of scales."""
    for name in NAMES:
        for kind in ENDS:
            if (kind == "INT16" and name in ONLY_BYTES) or (kind == "UINT8" and name in NO_UNSIGNED):
                continue
            for which in (0, 1):
                yield (f"{name.lower()} {kind} {which}", *one(name, kind, which, {}))
    for kind in ENDS:
        yield (f"gelu near {kind}", *one("GELU", kind, 0, {"approximate": True}))
        for slope in (0.1, 1.5, -0.3):
            yield (f"leaky_relu {kind} slope {slope}", *one("LEAKY_RELU", kind, 0, {"alpha": slope}))


def steps(name: str, kind: str, which: int) -> tuple[tuple[float, int], tuple[float, int]]:
    """Scales and zero points of input and output."""
    zero = {"INT8": (-5, 17), "UINT8": (100, 131), "INT16": (0, 0)}[kind]
    fine = {"INT8": 1.0, "UINT8": 1.0, "INT16": 1 / 256}[kind]
    x = ((0.05, 0.11)[which] * fine, zero[which])
    if name == "LOGISTIC":
        return x, (1 / 32768, 0) if kind == "INT16" else (1 / 256, -128 if kind == "INT8" else 0)
    if name == "TANH":
        return x, (1 / 32768, 0) if kind == "INT16" else (1 / 128, 0 if kind == "INT8" else 128)
    if name == "NEG":
        return (x[0], 0), (x[0], 0)
    if name in ("RELU", "ABS", "LEAKY_RELU") and which:
        return x, (x[0], zero[0])
    return x, ((0.043, 0.2)[which] * fine, zero[which] + (3 if kind != "INT16" else 0))


def one(name: str, kind: str, which: int, options: dict[str, Any]) -> tuple[bytes, list[Any]]:
    """A file and all integers that it takes."""
    low, high = ENDS[kind]
    (x, zero), (y, to_zero) = steps(name, kind, which)
    if kind == "INT16" and name in ("LOGISTIC", "TANH") and which == 0:
        x = 2.0**-12
    values = np.arange(low, high + 1, 97 if kind == "INT16" else 1)
    if name in ("SQRT", "RSQRT"):
        values = np.maximum(values, zero)
    values = values.astype(kind.lower())
    tensors = [Tensor(values.shape, kind, scale=x, zero=zero), Tensor(values.shape, kind, scale=y, zero=to_zero)]
    if name == "LEAKY_RELU":
        options = {"alpha": 0.2, **options}
    return file(Graph(tensors, [Op(name, [0], [1], TABLES.get(name, ""), options)], [0], [1])), [values]
