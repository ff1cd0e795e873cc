"""LSTMs and filters over time of integers: data in i8, cells and states of filters in i16."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file

Case = tuple[str, bytes, list[Any], int]

BATCH, STEPS, INPUTS, HIDDEN, OUTPUTS = 2, 3, 5, 4, 3


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """All that the kernels have."""
    for what in ("plain", "coupled", "peepholes", "projection", "clipped", "all"):
        for major in (True, False):
            yield (f"lstm {what} time first {major}", *lstm(draw, what, major), 2)
    for what in ("plain", "all"):
        yield (f"lstm step {what}", *lstm(draw, what, None), 3)
    for exponent in (-15, -12, -9):
        yield (f"lstm cell of 2**{exponent}", *lstm(draw, "plain", True, exponent=exponent), 2)
    yield ("lstm of great weights", *lstm(draw, "plain", True, size=0.05), 2)
    for rank, steps in ((1, 1), (1, 4), (2, 3)):
        for with_bias in (True, False):
            yield (f"svdf rank {rank} of {steps} bias {with_bias}", *svdf(draw, rank, steps, with_bias=with_bias), 5)
    yield from lstm_cases_of_norms(draw)


def lstm_cases_of_norms(draw: np.random.Generator) -> Iterator[Case]:
    for what in ("norm", "norm coupled", "norm all"):
        for major in (True, False, None):
            yield (f"lstm {what} time first {major}", *lstm(draw, what, major), 2)
    yield ("lstm norm of small weights", *lstm(draw, "norm", True, size=1e-4), 2)


def lstm(
    draw: np.random.Generator, what: str, major: bool | None, *, exponent: int = -11, size: float = 0.01
) -> tuple[bytes, list[Any]]:
    parts = ("peepholes", "projection", "clipped") if "all" in what else tuple(what.split())
    parts = (*parts, "norm") if "norm" in what else parts
    tensors: list[Tensor] = []

    def add(tensor: Tensor) -> int:
        tensors.append(tensor)
        return len(tensors) - 1

    def weights(*shape: int) -> int:
        return add(const(draw.integers(-127, 128, shape), "INT8", scale=size * draw.uniform(0.5, 1), zero=0))

    def bias(scale: float, count: int) -> int:
        return add(const(draw.integers(-3000, 3000, count), "INT32", scale=scale, zero=0))

    outputs = OUTPUTS if "projection" in parts else HIDDEN
    shape = (BATCH,) if major is None else (STEPS, BATCH) if major else (BATCH, STEPS)
    x = add(Tensor((*shape, INPUTS), "INT8", scale=0.03, zero=7))
    inputs = [x]
    for width in (INPUTS, outputs):
        inputs += [-1 if "coupled" in parts else weights(HIDDEN, width), *(weights(HIDDEN, width) for _ in range(3))]
    kinds = [add(const(draw.integers(-32768, 32768, HIDDEN), "INT16", scale=2e-5, zero=0)) for _ in range(3)]
    inputs += kinds if "peepholes" in parts else [-1] * 3
    inputs += [-1 if "coupled" in parts else bias(3e-4, HIDDEN), *(bias(3e-4, HIDDEN) for _ in range(3))]
    hidden = 0.008
    inputs += [weights(OUTPUTS, HIDDEN), bias(8e-5, OUTPUTS)] if "projection" in parts else [-1, -1]
    state = {"scale": 0.01 if "projection" in parts else hidden, "zero": 3 if "projection" in parts else -5}
    inputs += [add(Tensor((BATCH, outputs), "INT8", is_variable=True, **state))]
    inputs += [add(Tensor((BATCH, HIDDEN), "INT16", is_variable=True, scale=2.0**exponent, zero=0))]
    norms = (
        [add(const(draw.integers(5000, 32768, HIDDEN), "INT16", scale=3e-5, zero=0)) for _ in range(4)]
        if "norm" in parts
        else [-1] * 4
    )
    inputs += [-1, *norms[1:]] if "coupled" in parts else norms
    gate = 2e-4 if "norm" in parts else 2.0**-12
    between = [add(Tensor((), "INT16", scale=gate, zero=0)) for _ in range(4)]
    between += [add(Tensor((), "INT8", scale=hidden, zero=-5))]
    out = add(Tensor((*shape, outputs), "INT8", **state))
    options: dict[str, Any] = {
        "fusedActivationFunction": 4, "cellClip": 0.4 if "clipped" in parts else 0.0,
        "projClip": 0.3 if "all" in what else 0.0,
    }  # fmt: skip
    given = [draw.integers(-128, 128, (*shape, INPUTS)).astype(np.int8)]
    if major is None:
        op = Op("LSTM", inputs, [out], "LSTMOptions", options, intermediates=between)
    else:
        options["timeMajor"] = major
        op = Op(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            inputs,
            [out],
            "UnidirectionalSequenceLSTMOptions",
            options,
            intermediates=between,
        )
    return file(Graph(tensors, [op], [x], [out])), given


def svdf(draw: np.random.Generator, rank: int, steps: int, *, with_bias: bool) -> tuple[bytes, list[Any]]:
    filters = 3 * rank
    tensors = [
        Tensor((BATCH, INPUTS), "INT8", scale=0.03, zero=7),
        const(draw.integers(-127, 128, (filters, INPUTS)), "INT8", scale=0.01, zero=0),
        const(draw.integers(-32768, 32768, (filters, steps)), "INT16", scale=3e-5, zero=0),
        const(draw.integers(-3000, 3000, 3), "INT32", scale=3e-8, zero=0),
        Tensor((BATCH, steps * filters), "INT16", is_variable=True, scale=0.001, zero=0),
        Tensor((BATCH, 3), "INT8", scale=0.04, zero=-9),
    ]
    options = {"rank": rank, "fusedActivationFunction": 1}
    op = Op("SVDF", [0, 1, 2, 3 if with_bias else -1, 4], [5], "SVDFOptions", options)
    return file(Graph(tensors, [op], [0], [5])), [draw.integers(-128, 128, (BATCH, INPUTS)).astype(np.int8)]
