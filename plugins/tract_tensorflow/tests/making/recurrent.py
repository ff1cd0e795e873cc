"""Recurrent networks and filters over time, whose states go on from run to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file

Case = tuple[str, bytes, list[Any], int]

BATCH, STEPS, INPUTS, HIDDEN, OUTPUTS = 2, 3, 5, 4, 3
ACTIVATIONS = {"none": 0, "relu": 1, "relu6": 3, "tanh": 4}


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """Floats, and weights in bytes."""
    for kind in ("floats", "bytes", "bytes asymmetric"):
        yield from rnns(draw, kind)
        yield from svdfs(draw, kind)
        for what in ("plain", "coupled", "peepholes", "projection", "ends", "norm", "all"):
            if what == "all" and kind != "floats":
                continue
            yield (f"lstm step {what} {kind}", *lstm(draw, kind, what, None), 3)
            for major in (True, False):
                yield (f"lstm {what} {kind} time first {major}", *lstm(draw, kind, what, major), 2)
        for merged in (True, False):
            yield (f"lstm both ways merged {merged} {kind}", *two_lstms(draw, kind, merged, ""), 2)
    for more in ("crossed", "stacked"):
        yield (f"lstm both ways {more}", *two_lstms(draw, "floats", False, more), 2)
        yield (f"rnn both ways {more}", *two_rnns(draw, "floats", False, more), 2)
    yield ("lstm of relu", *lstm(draw, "floats", "plain", True, activation=1), 2)
    yield ("lstm of one item, one step", *lstm(draw, "floats", "plain", True, batch=1, steps=1), 2)
    yield ("lstm of many steps", *lstm(draw, "floats", "plain", True, batch=1, steps=17), 2)
    yield ("basic lstm", *basic(draw), 2)


class Builder:
    """Tensors of a graph, as they come."""

    def __init__(self, draw: np.random.Generator, kind: str) -> None:
        self.draw, self.kind = draw, kind
        self.tensors: list[Tensor] = []

    def add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def weights(self, *shape: int) -> int:
        """In bytes where the network has such."""
        if self.kind == "floats":
            return self.vector(*shape)
        scale = float(np.float32(self.draw.uniform(0.003, 0.01)))
        return self.add(const(self.draw.integers(-127, 128, shape), "INT8", scale=scale, zero=0))

    def vector(self, *shape: int) -> int:
        """In floats in any case."""
        return self.add(const(self.draw.standard_normal(shape, np.float32) * np.float32(0.5)))

    def state(self, *shape: int) -> int:
        return self.add(Tensor(shape, is_variable=True))

    @property
    def is_asymmetric(self) -> bool:
        return "asymmetric" in self.kind


def sizes(axis_first: bool | None, last: int, batch: int = BATCH, steps: int = STEPS) -> tuple[int, ...]:
    """Of data: one step, or several."""
    if axis_first is None:
        return batch, last
    return (steps, batch, last) if axis_first else (batch, steps, last)


def made(b: Builder, op: Op, x: Sequence[int], out: Sequence[int]) -> tuple[bytes, list[Any]]:
    given = [b.draw.standard_normal(b.tensors[slot].shape, np.float32) for slot in x]
    return file(Graph(b.tensors, [op], list(x), list(out))), given


def rnns(draw: np.random.Generator, kind: str) -> Iterator[Case]:
    for word, number in ACTIVATIONS.items():
        yield (f"rnn step {word} {kind}", *rnn(draw, kind, number, None), 3)
    for major in (True, False):
        yield (f"rnn {kind} time first {major}", *rnn(draw, kind, 4, major), 2)
    if kind == "floats":  # with weights in bytes, LiteRT's kernel reads what it has not written, or ends the process
        for merged in (True, False):
            yield (f"rnn both ways merged {merged}", *two_rnns(draw, kind, merged, ""), 2)


def rnn(draw: np.random.Generator, kind: str, activation: int, major: bool | None) -> tuple[bytes, list[Any]]:
    b = Builder(draw, kind)
    x = b.add(Tensor(sizes(major, INPUTS)))
    inputs = [x, b.weights(HIDDEN, INPUTS), b.weights(HIDDEN, HIDDEN), b.vector(HIDDEN), b.state(BATCH, HIDDEN)]
    out = b.add(Tensor(sizes(major, HIDDEN)))
    options: dict[str, Any] = {"fusedActivationFunction": activation, "asymmetricQuantizeInputs": b.is_asymmetric}
    if major is None:
        return made(b, Op("RNN", inputs, [out], "RNNOptions", options), [x], [out])
    op = Op("UNIDIRECTIONAL_SEQUENCE_RNN", inputs, [out], "SequenceRNNOptions", {**options, "timeMajor": major})
    return made(b, op, [x], [out])


def two_rnns(draw: np.random.Generator, kind: str, merged: bool, more: str) -> tuple[bytes, list[Any]]:
    b = Builder(draw, kind)
    given = [b.add(Tensor(sizes(True, INPUTS))) for _ in range(2 if more else 1)]
    inputs = [given[0]]
    for _ in range(2):
        inputs += [b.weights(HIDDEN, INPUTS), b.weights(HIDDEN, HIDDEN), b.vector(HIDDEN), b.state(BATCH, HIDDEN)]
    inputs += [given[1] if more else -1]
    inputs += [b.weights(HIDDEN, INPUTS) for _ in range(2)] if more == "crossed" else [-1, -1]
    out = [b.add(Tensor(sizes(True, HIDDEN))) for _ in range(1 if merged else 2)]
    options = {
        "timeMajor": True, "mergeOutputs": merged, "fusedActivationFunction": 4,
        "asymmetricQuantizeInputs": b.is_asymmetric,
    }  # fmt: skip
    op = Op("BIDIRECTIONAL_SEQUENCE_RNN", inputs, out, "BidirectionalSequenceRNNOptions", options)
    return made(b, op, given, out)


def network(b: Builder, what: str) -> tuple[list[int], int]:
    """The tensors of one LSTM, from the weights of its input on, and how many outputs it has."""
    parts = {"all": ("peepholes", "projection", "ends", "norm")}.get(what, (what,))
    outputs = OUTPUTS if "projection" in parts else HIDDEN
    first = -1 if "coupled" in parts else b.weights(HIDDEN, INPUTS)
    found = [first, *(b.weights(HIDDEN, INPUTS) for _ in range(3))]
    found += [-1 if first < 0 else b.weights(HIDDEN, outputs), *(b.weights(HIDDEN, outputs) for _ in range(3))]
    found += [b.weights(HIDDEN) for _ in range(3)] if "peepholes" in parts else [-1] * 3
    found += [-1 if first < 0 else b.vector(HIDDEN), *(b.vector(HIDDEN) for _ in range(3))]
    found += [b.weights(OUTPUTS, HIDDEN), b.vector(OUTPUTS)] if "projection" in parts else [-1, -1]
    return found, outputs


def lstm(
    draw: np.random.Generator, kind: str, what: str, major: bool | None, *, activation: int = 4, batch: int = BATCH,
    steps: int = STEPS,
) -> tuple[bytes, list[Any]]:  # fmt: skip
    b = Builder(draw, kind)
    x = b.add(Tensor(sizes(major, INPUTS, batch, steps)))
    tensors, outputs = network(b, what)
    inputs = [x, *tensors, b.state(batch, outputs), b.state(batch, HIDDEN)]
    if what in ("norm", "all"):
        inputs += [b.vector(HIDDEN) for _ in range(4)]
    out = b.add(Tensor(sizes(major, outputs, batch, steps)))
    options: dict[str, Any] = {
        "fusedActivationFunction": activation, "asymmetricQuantizeInputs": b.is_asymmetric,
        "cellClip": 0.7 if what in ("ends", "all") else 0.0, "projClip": 0.5 if what == "all" else 0.0,
    }  # fmt: skip
    if major is None:
        return made(b, Op("LSTM", inputs, [out], "LSTMOptions", options), [x], [out])
    options["timeMajor"] = major
    op = Op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [out], "UnidirectionalSequenceLSTMOptions", options)
    return made(b, op, [x], [out])


def two_lstms(draw: np.random.Generator, kind: str, merged: bool, more: str) -> tuple[bytes, list[Any]]:
    b = Builder(draw, kind)
    given = [b.add(Tensor(sizes(True, INPUTS))) for _ in range(2 if more else 1)]
    inputs = [given[0], *network(b, "plain")[0], *network(b, "peepholes")[0]]
    inputs += [b.state(BATCH, HIDDEN) for _ in range(4)]
    inputs += [given[1] if more else -1]
    inputs += [b.weights(HIDDEN, INPUTS) for _ in range(8)] if more == "crossed" else [-1] * 8
    out = [b.add(Tensor(sizes(True, HIDDEN))) for _ in range(1 if merged else 2)]
    options = {
        "timeMajor": True, "mergeOutputs": merged, "fusedActivationFunction": 4,
        "asymmetricQuantizeInputs": b.is_asymmetric,
    }  # fmt: skip
    op = Op("BIDIRECTIONAL_SEQUENCE_LSTM", inputs, out, "BidirectionalSequenceLSTMOptions", options)
    return made(b, op, given, out)


def basic(draw: np.random.Generator) -> tuple[bytes, list[Any]]:
    b = Builder(draw, "floats")
    x, h = b.add(Tensor((BATCH, INPUTS))), b.add(Tensor((BATCH, HIDDEN)))
    weights, bias = b.vector(4 * HIDDEN, INPUTS + HIDDEN), b.vector(4 * HIDDEN)
    c = b.add(Tensor((BATCH, HIDDEN)))
    out = [b.add(Tensor((BATCH, size))) for size in (HIDDEN, HIDDEN, INPUTS + HIDDEN, 4 * HIDDEN)]
    options = {"kernelType": 1, "fusedActivationFunction": 4}
    op = Op("LSTM", [x, h, weights, bias, c], out, "LSTMOptions", options)
    return made(b, op, [x, h, c], out[:2])


def svdfs(draw: np.random.Generator, kind: str) -> Iterator[Case]:
    for rank, steps, activation in ((1, 1, 0), (1, 4, 1), (2, 3, 0)):
        b = Builder(draw, kind)
        filters = 3 * rank
        x = b.add(Tensor((BATCH, INPUTS)))
        inputs = [
            x,
            b.weights(filters, INPUTS),
            b.weights(filters, steps),
            b.vector(3),
            b.state(BATCH, steps * filters),
        ]
        if rank == 2:
            inputs[3] = -1
        out = b.add(Tensor((BATCH, 3)))
        options = {"rank": rank, "fusedActivationFunction": activation, "asymmetricQuantizeInputs": b.is_asymmetric}
        yield (
            f"svdf rank {rank} of {steps} {kind}",
            *made(b, Op("SVDF", inputs, [out], "SVDFOptions", options), [x], [out]),
            4,
        )
