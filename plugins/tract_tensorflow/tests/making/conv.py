"""Convolutions of images."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file

Case = tuple[str, bytes, list[Any]]


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By padding, stride, dilation, groups, activation, and type."""
    for padding, (stride, dilation) in product((0, 1), ((1, 1), (2, 1), (1, 2))):
        options = {
            "padding": padding, "strideW": stride, "strideH": stride, "dilationWFactor": dilation,
            "dilationHFactor": dilation,
        }  # fmt: skip
        label = f"{('same', 'valid')[padding]} stride {stride} dilation {dilation}"
        for activation in (0, 1, 3):
            more = {**options, "fusedActivationFunction": activation}
            for kind in ("FLOAT32", "INT8", "INT8 per channel", "UINT8", "INT16", "weights in bytes"):
                yield (f"conv {kind} {label} activation {activation}", *conv(draw, kind, more, groups=1))
        yield (f"grouped {label}", *conv(draw, "INT8 per channel", options, groups=2))
        for kind in ("FLOAT32", "INT8 per channel", "UINT8"):
            for multiplier in (1, 2):
                yield (f"depthwise {kind} {label} x {multiplier}", *depthwise(draw, kind, options, multiplier))


def conv(draw: np.random.Generator, kind: str, options: dict[str, Any], groups: int) -> tuple[bytes, list[Any]]:
    """A kernel of 3 by 2 on images of 7 by 9 with 4 channels."""
    x, given = data(draw, kind, (2, 7, 9, 4))
    return made(draw, kind, (x, given), (6, 3, 2, 4 // groups), ("CONV_2D", "Conv2DOptions", options))


def depthwise(
    draw: np.random.Generator, kind: str, options: dict[str, Any], multiplier: int
) -> tuple[bytes, list[Any]]:
    """The same, channel by channel."""
    x, given = data(draw, kind, (2, 7, 9, 4))
    more = {**options, "depthMultiplier": multiplier}
    what = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", more)
    return made(draw, kind, (x, given), (1, 3, 2, 4 * multiplier), what)


def data(draw: np.random.Generator, kind: str, shape: tuple[int, ...]) -> tuple[Tensor, Any]:
    """An input, and what it is given."""
    if kind in ("FLOAT32", "weights in bytes"):
        return Tensor(shape), draw.standard_normal(shape, np.float32)
    name = kind.partition(" ")[0]
    ends = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}[name]
    scale, zero = {"INT8": (0.05, -7), "UINT8": (0.04, 120), "INT16": (0.0002, 0)}[name]
    values = draw.integers(ends[0], ends[1] + 1, shape).astype(name.lower())
    return Tensor(shape, name, scale=scale, zero=zero), values


def made(
    draw: np.random.Generator, kind: str, x: tuple[Tensor, Any], kernel: tuple[int, ...], what: tuple[str, str, Any]
) -> tuple[bytes, list[Any]]:
    """The file, and what it is given."""
    given, values = x
    name, table, options = what
    outputs, axis = (kernel[0], 0) if name == "CONV_2D" else (kernel[3], 3)
    out = Tensor((1, 1, 1, outputs))
    if kind == "FLOAT32":
        weights, bias = (
            const(draw.standard_normal(kernel, np.float32)),
            const(draw.standard_normal(outputs, np.float32)),
        )
    elif kind == "weights in bytes":
        integers = draw.integers(-127, 128, kernel)
        weights = const(integers, "INT8", scale=draw.uniform(0.001, 0.02, outputs), zero=0, axis=axis)
        bias = const(draw.standard_normal(outputs, np.float32))
    else:
        per_channel, is_wide = "channel" in kind or "INT16" in kind, "INT16" in kind
        scale = draw.uniform(0.001, 0.02, outputs) if per_channel else 0.01
        integers = draw.integers(0, 256, kernel) if kind == "UINT8" else draw.integers(-127, 128, kernel)
        zero = 131 if kind == "UINT8" else 0
        weights = const(integers, "UINT8" if kind == "UINT8" else "INT8", scale=scale, zero=zero, axis=axis)
        bias = const(
            draw.integers(-2000, 2000, outputs), "INT64" if is_wide else "INT32", scale=np.multiply(given.scale, scale)
        )
        out.type, out.scale, out.zero = kind.partition(" ")[0], 0.0007 if is_wide else 0.13, 0 if is_wide else 11
    graph = Graph([given, weights, bias, out], [Op(name, [0, 1, 2], [3], table, options)], [0], [3])
    return file(graph), [values]
