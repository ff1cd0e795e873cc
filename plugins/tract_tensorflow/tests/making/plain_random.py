"""Numbers drawn at random: LiteRT and this project draw others, which are alike in what is asked of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file
from single import Case


def cases(_: np.random.Generator) -> Iterator[Case]:
    """Where numbers lie, and where their mean lies."""
    for seeds in ((0, 0), (7, 0), (-1, 2**40)):
        for name, low, high in (("RANDOM_UNIFORM", 0.45, 0.55), ("RANDOM_STANDARD_NORMAL", -0.1, 0.1)):
            for fixed in (True, False):
                label = f"{name} {seeds} {'constant' if fixed else 'given'}"
                yield (label, *mean_within(name, seeds, (low, high), is_fixed=fixed))
    for kind in ("INT32", "INT64"):
        logits = np.array([[-200.0, 0, -200], [0, -200, -200]], np.float32)
        tensors = [Tensor((2, 3)), const(np.array(40, np.int32)), Tensor((2, 40), kind)]
        op = Op("MULTINOMIAL", [0, 1], [2], "RandomOptions", {"seed": 3, "seed2": 5})
        yield (f"MULTINOMIAL {kind}", file(Graph(tensors, [op], [0], [2])), [logits])


def mean_within(
    name: str, seeds: tuple[int, int], ends: tuple[float, float], *, is_fixed: bool
) -> tuple[bytes, list[Any]]:
    """Whether the mean of many numbers lies between two ends, and all of uniform ones between 0 and 1."""
    shape = np.array([40, 200], np.int32)
    tensors = [
        const(shape) if is_fixed else Tensor((2,), "INT32"),
        Tensor((40, 200)),
        const(np.array([0, 1], np.int32)),
        Tensor(()),
        *(const(np.array(end, np.float32)) for end in ends),
        Tensor((), "BOOL"),
        Tensor((), "BOOL"),
        Tensor((2,), "INT32"),
    ]
    ops = [
        Op(name, [0], [1], "RandomOptions", {"seed": seeds[0], "seed2": seeds[1]}),
        Op("MEAN", [1, 2], [3], "ReducerOptions", {}),
        Op("GREATER", [3, 4], [6], "GreaterOptions", {}),
        Op("LESS", [3, 5], [7], "LessOptions", {}),
        Op("SHAPE", [1], [8], "ShapeOptions", {"outType": 2}),
    ]
    return file(Graph(tensors, ops, [] if is_fixed else [0], [6, 7, 8])), [] if is_fixed else [shape]
