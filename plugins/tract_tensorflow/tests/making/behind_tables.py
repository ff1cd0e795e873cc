"""Files whose content lies behind the tables, as it does in those above 2 GB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from detection import cases as detections
from model import Graph, Op, Tensor, behind, const, file, nibbles

Case = tuple[str, bytes, list[Any]]


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """Weights, and what a custom operator says."""
    x = draw.standard_normal((2, 6), np.float32)
    tensors = [
        Tensor((2, 6)),
        const(draw.standard_normal((4, 6), np.float32)),
        const(np.ones(4, np.float32)),
        Tensor((2, 4)),
    ]
    op = Op("FULLY_CONNECTED", [0, 1, 2], [3], "FullyConnectedOptions", {})
    yield ("weights", behind(file(Graph(tensors, [op], [0], [3]))), [x])
    table = nibbles(draw.integers(-8, 8, (5, 4)), scale=0.5, zero=0)
    tensors = [Tensor((2,), "INT32"), table, Tensor((2, 4))]
    yield (
        "a table",
        behind(file(Graph(tensors, [Op("EMBEDDING_LOOKUP", [0, 1], [2])], [0], [2]))),
        [np.array([4, 1], np.int32)],
    )
    name, content, *rest = next(iter(detections(draw)))
    yield (f"options of detections, {name}", behind(content), *rest)
