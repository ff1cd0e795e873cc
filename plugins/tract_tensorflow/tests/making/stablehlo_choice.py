"""Graphs chosen by a number, and random bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from control import of_two
from control_states import SHAPE, Net
from model import Graph, Op, Tensor, file

Case = tuple[str, bytes, list[Any], int]


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By number, and by algorithm, type and size."""
    x = draw.standard_normal(SHAPE, np.float32)
    for number in (0, 1, 2, 3, -1):
        yield (f"graph {number} of 3", choice(of_two("ADD"), of_two("MUL"), of_two("SUB")), [ints(number), x], 1)
    yield ("graph of one", choice(of_two("ADD")), [ints(5), x], 1)
    for number in (0, 1):
        content = choice(Net(draw, "rnn").graph(), Net(draw, "lstm").graph(), of_two("MUL"))
        yield (f"graph {number} that keeps a state", content, [ints(number), x], 2)
    great = np.array([0xFEDCBA9876543210, 2**64 - 2, 0x0123456789ABCDEF], np.uint64)
    for algorithm, word in enumerate(("default", "philox", "threefry")):
        for kind in ("INT32", "UINT32", "INT64", "UINT64"):
            for shape in ((1,), (7,), (2, 3, 4)):
                state = great[:2] if len(shape) == 1 else draw.integers(0, 2**63, 2).astype(np.uint64)
                yield (f"{word} {kind} {shape}", bits(algorithm, kind, shape, 2), [state], 1)
        if word != "threefry":
            yield (f"{word} of three", bits(algorithm, "UINT32", (9,), 3), [great], 1)


def ints(number: int) -> Any:
    return np.array([number], np.int32)


def choice(*graphs: Graph) -> bytes:
    options = {"branchSubgraphIndices": [*range(1, len(graphs) + 1)]}
    op = Op("STABLEHLO_CASE", [0, 1], [2], "StablehloCaseOptions", options)
    return file(Graph([Tensor((1,), "INT32"), Tensor(SHAPE), Tensor(SHAPE)], [op], [0, 1], [2]), *graphs)


def bits(algorithm: int, kind: str, shape: tuple[int, ...], length: int) -> bytes:
    tensors = [Tensor((length,), "UINT64"), Tensor((length,), "UINT64"), Tensor(shape, kind)]
    op = Op("STABLEHLO_RNG_BIT_GENERATOR", [0], [1, 2], "StablehloRngBitGeneratorOptions", {"algorithm": algorithm})
    return file(Graph(tensors, [op], [0], [1, 2]))
