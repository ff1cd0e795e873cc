"""SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION of quantised rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, file

Case = tuple[str, bytes, list[Any]]

ENDS = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}
ZEROS = {"INT8": -7, "UINT8": 130, "INT16": 0}
SHAPES = ((1, 1), (3, 10), (2, 2, 7), (1, 200))


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By type, shape and scale; rows of one number only."""
    for kind in ENDS:
        fine = 1 / 256 if kind == "INT16" else 1.0
        for shape in SHAPES:
            for scale in (0.004, 0.05, 0.7):
                label = f"{kind} {'x'.join(map(str, shape))} {scale}"
                x = integers(draw, kind, shape)
                given = Tensor(shape, kind, scale=scale * fine, zero=ZEROS[kind])
                yield f"softmax {label}", *one("SOFTMAX", given, x, softmax_output(kind, shape), {"beta": 1.0})
                if kind != "INT16":
                    out = Tensor(shape, kind, scale=16 / 256, zero=127 if kind == "INT8" else 255)
                    yield f"log_softmax {label}", *one("LOG_SOFTMAX", given, x, out)
        x = integers(draw, kind, (2, 9))
        given = Tensor((2, 9), kind, scale=0.05 * fine, zero=ZEROS[kind])
        yield f"softmax {kind} beta", *one("SOFTMAX", given, x, softmax_output(kind, (2, 9)), {"beta": 0.5})
        same = np.full((2, 9), 17, kind.lower())
        yield f"softmax {kind} same", *one("SOFTMAX", given, same, softmax_output(kind, (2, 9)), {"beta": 1.0})
        if kind == "INT16":
            continue
        wide = softmax_output("INT16", (2, 9))
        yield f"softmax {kind} to INT16", *one("SOFTMAX", given, x, wide, {"beta": 1.0})
        for shape in (*SHAPES, (2, 4, 3, 5)):
            given = Tensor(shape, kind, scale=0.05, zero=ZEROS[kind])
            out = Tensor(shape, kind, scale=1 / 128, zero=0 if kind == "INT8" else 128)
            label = f"{kind} {'x'.join(map(str, shape))}"
            yield f"l2 {label}", *one("L2_NORMALIZATION", given, integers(draw, kind, shape), out)
            yield f"l2 near zero {label}", *one("L2_NORMALIZATION", given, near(draw, kind, shape), out)


def softmax_output(kind: str, shape: tuple[int, ...]) -> Tensor:
    """In the steps that the kernels have."""
    scale, zero = {"INT8": (1 / 256, -128), "UINT8": (1 / 256, 0), "INT16": (1 / 32768, 0)}[kind]
    return Tensor(shape, kind, scale=scale, zero=zero)


def integers(draw: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    """Of the whole type."""
    low, high = ENDS[kind]
    return draw.integers(low, high + 1, shape).astype(kind.lower())


def near(draw: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    """At most one step from the zero point; the first row is all zero points."""
    values = draw.integers(-1, 2, shape) + ZEROS[kind]
    values.reshape(-1, shape[-1])[0] = ZEROS[kind]
    return values.astype(kind.lower())


TABLES = {"SOFTMAX": "SoftmaxOptions", "LOG_SOFTMAX": "LogSoftmaxOptions", "L2_NORMALIZATION": "L2NormOptions"}


def one(
    name: str, given: Tensor, x: Any, out: Tensor, options: dict[str, Any] | None = None
) -> tuple[bytes, list[Any]]:
    """A file of one operator."""
    return file(Graph([given, out], [Op(name, [0], [1], TABLES[name], options or {})], [0], [1])), [x]
