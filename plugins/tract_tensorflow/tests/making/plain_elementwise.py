"""Operators on one tensor of plain numbers, element by element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from single import Case, numbers, single, with_ends

TYPES = {
    "ABS": "FLOAT32 INT32",
    "CEIL": "FLOAT32",
    "COS": "FLOAT32",
    "ELU": "FLOAT32",
    "EXP": "FLOAT32",
    "FLOOR": "FLOAT32",
    "HARD_SWISH": "FLOAT32",
    "LOG": "FLOAT32",
    "LOGICAL_NOT": "BOOL",
    "LOGISTIC": "FLOAT32",
    "NEG": "FLOAT32 INT32 INT64",
    "RELU": "FLOAT32",
    "RELU6": "FLOAT32",
    "RELU_0_TO_1": "FLOAT32",
    "RELU_N1_TO_1": "FLOAT32",
    "ROUND": "FLOAT32",
    "RSQRT": "FLOAT32",
    "SIGN": "FLOAT32 FLOAT64 INT32",
    "SIN": "FLOAT32",
    "SQRT": "FLOAT32",
    "SQUARE": "FLOAT32",
    "TANH": "FLOAT32",
}
POSITIVE = {"LOG", "RSQRT", "SQRT"}
WITH_NANS = {"ABS", "CEIL", "EXP", "FLOOR", "LOGISTIC", "NEG", "ROUND", "SQRT", "SQUARE", "TANH"}


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator, type and shape."""
    for name, types in TYPES.items():
        for kind in types.split():
            x = numbers(draw, kind, (3, 7))
            x = np.abs(x) if name in POSITIVE else x
            yield (f"{name} {kind}", *single(name, [x], kind, ranks=2))
            yield (f"{name} {kind} open", *single(name, [x[:1]], kind, ranks=2, opened={0}))
            if name in WITH_NANS or kind.startswith("INT"):
                yield (f"{name} {kind} ends", *single(name, [with_ends(x)], kind, ranks=2))
    x = numbers(draw, "FLOAT32", (2, 3, 5))
    for approximate in (False, True):
        options = ("GeluOptions", {"approximate": approximate})
        yield (f"GELU approximate {approximate}", *single("GELU", [x], options=options, ranks=3))
    for alpha in (0.25, 0.0, 1.5):
        options = ("LeakyReluOptions", {"alpha": alpha})
        yield (f"LEAKY_RELU {alpha}", *single("LEAKY_RELU", [x], options=options, ranks=3))
    shapes: list[tuple[int, ...]] = [(5,), (1, 1, 5), (3, 5), (2, 3, 5)]
    for index, shape in enumerate(shapes):
        slope: Any = numbers(draw, "FLOAT32", shape)
        yield (f"PRELU {index}", *single("PRELU", [x, slope], fixed={1}, ranks=3))
