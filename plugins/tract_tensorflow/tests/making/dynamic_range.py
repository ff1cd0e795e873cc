"""Data in floats by weights in bytes and in halves of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file, nibbles

Case = tuple[str, bytes, list[Any]]


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator, scales and how the data come into bytes."""
    for span in (False, True):
        label = "span" if span else "distance"
        for kind in ("one scale", "per channel", "nibbles", "nibbles per channel"):
            for shape, outputs in (((1, 13), 5), ((3, 16), 8), ((2, 3, 9), 1)):
                name = f"rows {kind} {label} {'x'.join(map(str, shape))}"
                yield name, *rows(draw, kind, numbers(draw, shape), outputs, {"asymmetricQuantizeInputs": span})
            more = {"asymmetricQuantizeInputs": span, "fusedActivationFunction": 3}
            yield f"rows {kind} {label} relu6", *rows(draw, kind, numbers(draw, (3, 16)), 8, more)
        for what, x in (("zeros", np.zeros((2, 4), np.float32)), ("positive", np.abs(numbers(draw, (2, 4))) + 1)):
            yield f"rows {what} {label}", *rows(draw, "one scale", x, 3, {"asymmetricQuantizeInputs": span})
        for flags in ((False, False), (False, True), (True, False)):
            yield f"matrices {label} {flags}", *matrices(draw, flags, span=span)
    for name in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        for padding, stride in ((0, 1), (0, 2), (1, 1), (1, 2)):
            for kind in ("one scale", "per channel", "nibbles per channel"):
                if name != "CONV_2D" and kind != "per channel":
                    continue
                label = f"{('same', 'valid')[padding]} stride {stride}"
                yield f"{name.lower()} {kind} {label}", *images(draw, name, kind, padding, stride)


def numbers(draw: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Rows of different sizes."""
    sizes = 2.0 ** np.arange(shape[0]).reshape([-1] + [1] * (len(shape) - 1))
    return (draw.standard_normal(shape) * sizes).astype(np.float32)


def weights(draw: np.random.Generator, kind: str, shape: tuple[int, ...], axis: int) -> Tensor:
    """A constant in bytes, or in halves of them."""
    scale = draw.uniform(0.005, 0.02, shape[axis]) if "channel" in kind else 0.01
    if "nibbles" in kind:
        return nibbles(draw.integers(-8, 8, shape), scale=scale, zero=0, axis=axis)
    return const(draw.integers(-127, 128, shape), "INT8", scale=scale, zero=0, axis=axis)


def rows(
    draw: np.random.Generator, kind: str, x: Any, outputs: int, options: dict[str, Any]
) -> tuple[bytes, list[Any]]:
    """FULLY_CONNECTED."""
    inputs = x.shape[-1]
    tensors = [
        Tensor(x.shape), weights(draw, kind, (outputs, inputs), 0), const(draw.standard_normal(outputs, np.float32)),
        Tensor((x.size // inputs, outputs)),
    ]  # fmt: skip
    op = Op("FULLY_CONNECTED", [0, 1, 2], [3], "FullyConnectedOptions", options)
    return file(Graph(tensors, [op], [0], [3])), [x]


def matrices(draw: np.random.Generator, flags: tuple[bool, bool], *, span: bool) -> tuple[bytes, list[Any]]:
    """BATCH_MATMUL."""
    x = numbers(draw, (2, 6, 3) if flags[0] else (2, 3, 6))
    matrix = weights(draw, "one scale", (2, 5, 6) if flags[1] else (2, 6, 5), 2)
    options = {"adjX": flags[0], "adjY": flags[1], "asymmetricQuantizeInputs": span}
    op = Op("BATCH_MATMUL", [0, 1], [2], "BatchMatMulOptions", options)
    return file(Graph([Tensor(x.shape), matrix, Tensor((2, 3, 5))], [op], [0], [2])), [x]


def images(draw: np.random.Generator, name: str, kind: str, padding: int, stride: int) -> tuple[bytes, list[Any]]:
    """A kernel of 3 by 2 on two images of 5 by 4 with 3 channels."""
    x = numbers(draw, (2, 5, 4, 3))
    is_plain = name == "CONV_2D"
    kernel = weights(draw, kind, (4, 3, 2, 3) if is_plain else (1, 3, 2, 6), 0 if is_plain else 3)
    outputs = 4 if is_plain else 6
    options = {"padding": padding, "strideW": stride, "strideH": stride}
    if not is_plain:
        options["depthMultiplier"] = 2
    tensors = [Tensor(x.shape), kernel, const(draw.standard_normal(outputs, np.float32)), Tensor((1, 1, 1, outputs))]
    table = "Conv2DOptions" if is_plain else "DepthwiseConv2DOptions"
    return file(Graph(tensors, [Op(name, [0, 1, 2], [3], table, options)], [0], [3])), [x]
