"""Products of matrices of quantised numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file, nibbles

Case = tuple[str, bytes, list[Any]]

ENDS = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}
DATA = {"INT8": (0.05, -7), "UINT8": (0.04, 120), "INT16": (0.0002, 0)}
OUT = {"INT8": (0.31, 11), "UINT8": (0.23, 119), "INT16": (0.0011, 0)}


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By type, weights, shape and activation."""
    for kind in ENDS:
        for weights in ("one scale", "per channel", "nibbles"):
            if kind == "UINT8" and weights != "one scale":
                continue
            for shape, outputs in (((1, 13), 5), ((3, 16), 8), ((2, 3, 9), 1), ((2, 2, 6), 7)):
                inputs = 12 if shape == (2, 2, 6) else shape[-1]
                label = f"{kind} {weights} {'x'.join(map(str, shape))} to {outputs}"
                yield f"rows {label}", *rows(draw, kind, weights, shape, (outputs, inputs), options={})
            for activation in (1, 3):
                more = {"fusedActivationFunction": activation}
                yield (
                    f"rows {kind} {weights} act {activation}",
                    *rows(draw, kind, weights, (3, 16), (8, 16), options=more),
                )
        yield f"rows {kind} kept", *rows(draw, kind, "one scale", (2, 3, 9), (4, 9), options={"keepNumDims": True})
        yield f"rows {kind} no bias", *rows(draw, kind, "one scale", (3, 9), (4, 9), options={}, bias=False)
        if kind != "INT16":
            yield f"rows {kind} given weights", *rows(draw, kind, "given", (3, 9), (4, 9), options={})
    for kind in ("INT8", "INT16"):
        for flags in ((False, False), (False, True), (True, False), (True, True)):
            yield f"matrices {kind} {flags}", *matrices(draw, kind, ((2, 3, 5), (2, 5, 4)), flags)
        yield f"matrices {kind} stretched", *matrices(draw, kind, ((2, 1, 3, 7), (3, 7, 2)), (False, False))
        yield f"matrices {kind} one", *matrices(draw, kind, ((1, 1), (1, 1)), (False, False))


def integers(draw: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    """Of the whole type."""
    low, high = ENDS[kind]
    return draw.integers(low, high + 1, shape).astype(kind.lower())


def rows(
    draw: np.random.Generator,
    kind: str,
    weights: str,
    shape: tuple[int, ...],
    kernel: tuple[int, int],
    *,
    options: dict[str, Any],
    bias: bool = True,
) -> tuple[bytes, list[Any]]:
    """FULLY_CONNECTED."""
    outputs, is_word = kernel[0], kind == "INT16"
    scale = draw.uniform(0.005, 0.02, outputs) if weights == "per channel" else 0.01 if weights != "nibbles" else 0.1
    x = integers(draw, kind, shape)
    values = [x]
    zero = 131 if kind == "UINT8" else 0
    if weights == "nibbles":
        matrix = nibbles(draw.integers(-8, 8, kernel), scale=scale, zero=0)
    elif weights == "given":
        values.append(integers(draw, kind, kernel))
        matrix = Tensor(kernel, kind, scale=scale, zero=zero)
    else:
        whole = draw.integers(0, 256, kernel) if kind == "UINT8" else draw.integers(-127, 128, kernel)
        matrix = const(whole, "UINT8" if kind == "UINT8" else "INT8", scale=scale, zero=zero, axis=0)
    given = Tensor(shape, kind, scale=DATA[kind][0], zero=DATA[kind][1])
    count = int(np.prod(shape)) // kernel[1]
    result = (*shape[:-1], outputs) if options.get("keepNumDims") else (count, outputs)
    out = Tensor(result, kind, scale=OUT[kind][0], zero=OUT[kind][1])
    start = const(
        draw.integers(-2000, 2000, outputs), "INT64" if is_word else "INT32", scale=np.multiply(given.scale, scale)
    )
    slots = [0, 1, 2] if bias else [0, 1, -1]
    op = Op("FULLY_CONNECTED", slots, [3], "FullyConnectedOptions", options)
    return file(Graph([given, matrix, start, out], [op], [0, 1][: len(values)], [3])), values


def matrices(
    draw: np.random.Generator, kind: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], flags: tuple[bool, bool]
) -> tuple[bytes, list[Any]]:
    """BATCH_MATMUL."""
    turned = [(*shape[:-2], shape[-1], shape[-2]) if flag else shape for shape, flag in zip(shapes, flags, strict=True)]
    values = [integers(draw, kind, shape) for shape in turned]
    zeros = (-7, 12) if kind == "INT8" else (0, 0)
    scales = (0.05, 0.02) if kind == "INT8" else (0.0002, 0.0003)
    tensors = [
        Tensor(shape, kind, scale=scale, zero=zero) for shape, scale, zero in zip(turned, scales, zeros, strict=True)
    ]
    batch = np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2])
    out = Tensor((*batch, shapes[0][-2], shapes[1][-1]), kind, scale=OUT[kind][0], zero=OUT[kind][1])
    op = Op("BATCH_MATMUL", [0, 1], [2], "BatchMatMulOptions", {"adjX": flags[0], "adjY": flags[1]})
    return file(Graph([*tensors, out], [op], [0, 1], [2])), values
