"""Pools, sizes and deconvolutions of quantised images, and axes that are reduced."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file

Case = tuple[str, bytes, list[Any]]

ENDS = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}
STEPS = {"INT8": (0.05, -7), "UINT8": (0.04, 120), "INT16": (0.0002, 0)}
OTHER = {"INT8": (0.031, 12), "UINT8": (0.06, 101), "INT16": (0.00015, 0)}


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator, type, and what it is told."""
    for kind in ENDS:
        yield from pools(draw, kind)
        yield from sizes(draw, kind)
        yield from reductions(draw, kind)
        yield from deconvolutions(draw, kind)
    for kind, name in product(ENDS, ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")):
        for align, half in ((False, False), (True, False), (False, True)):
            table = "ResizeBilinearOptions" if "BILINEAR" in name else "ResizeNearestNeighborOptions"
            op = Op(name, [0, 1], [2], table, {"alignCorners": align, "halfPixelCenters": half})
            graph = Graph(
                [tensor(kind, (1, 4, 3, 2)), Tensor((2,), "INT32"), tensor(kind, (1, 1, 1, 1))], [op], [0, 1], [2]
            )
            given = [integers(draw, kind, (1, 4, 3, 2)), np.array([7, 5], np.int32)]
            yield (f"{name.lower()} {kind} to given sizes {align} {half}", file(graph), given)


def integers(draw: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    """Of the whole type."""
    low, high = ENDS[kind]
    return draw.integers(low, high + 1, shape).astype(kind.lower())


def tensor(kind: str, shape: tuple[int, ...], steps: tuple[float, int] | None = None) -> Tensor:
    """In steps of its type, or others."""
    scale, zero = steps or STEPS[kind]
    return Tensor(shape, kind, scale=scale, zero=zero)


def pools(draw: np.random.Generator, kind: str) -> Iterator[Case]:
    """Windows of 2 by 3 on images of 7 by 5."""
    for name, padding, stride in product(("AVERAGE_POOL_2D", "MAX_POOL_2D"), (0, 1), (1, 2)):
        for activation in (0, 1, 3):
            options = {
                "padding": padding, "strideW": stride, "strideH": stride, "filterHeight": 2, "filterWidth": 3,
                "fusedActivationFunction": activation,
            }  # fmt: skip
            x = integers(draw, kind, (2, 7, 5, 3))
            tensors = [tensor(kind, x.shape), tensor(kind, (1, 1, 1, 3))]
            graph = Graph(tensors, [Op(name, [0], [1], "Pool2DOptions", options)], [0], [1])
            label = f"{('same', 'valid')[padding]} stride {stride} activation {activation}"
            yield f"{name.lower()} {kind} {label}", file(graph), [x]


def sizes(draw: np.random.Generator, kind: str) -> Iterator[Case]:
    """Larger and smaller ones."""
    for name, table in (
        ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
        ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
    ):
        for to in ((7, 3), (9, 11), (1, 1), (4, 5)):
            for flags in ({}, {"alignCorners": True}, {"halfPixelCenters": True}):
                x = integers(draw, kind, (1, 4, 5, 2))
                tensors = [
                    tensor(kind, x.shape),
                    const(np.array(to, np.int32)),
                    tensor(kind, (1, *to, 2)),
                ]
                graph = Graph(tensors, [Op(name, [0, 1], [2], table, flags)], [0], [2])
                label = f"{kind} {to[0]}x{to[1]} {''.join(flags)}"
                yield f"{name.lower()} {label}", file(graph), [x]


def reductions(draw: np.random.Generator, kind: str) -> Iterator[Case]:
    """Over one axis, two and all, kept or not; sums of i8 and i16 with factors at which all kernels round alike."""
    for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        if name == "REDUCE_PROD" and kind == "UINT8":
            continue
        for axes in ((1, 2), (-1,), (0, 1, 2, 3), (0, 2)):
            for kept in (True, False):
                same = name in ("REDUCE_MAX", "REDUCE_MIN") or (axes == (-1,) and kept)
                x = integers(draw, kind, (2, 3, 4, 2))
                steps = STEPS[kind]
                if name == "REDUCE_PROD":
                    x = x[:, :2, :1]
                    steps = (0.1, 3) if kind == "INT8" else (0.001, 0)
                out = steps if same else OTHER[kind]
                if name == "SUM":
                    out = (steps[0] * (1.7 if kind != "UINT8" else 5), out[1])
                tensors = [
                    tensor(kind, x.shape, steps),
                    const(np.array(axes, np.int32)),
                    tensor(kind, np.empty(x.shape).sum(axes, keepdims=kept).shape, out),
                ]
                op = Op(name, [0, 1], [2], "ReducerOptions", {"keepDims": kept})
                label = f"{kind} {axes} {'kept' if kept else 'gone'}"
                yield f"{name.lower()} {label}", file(Graph(tensors, [op], [0], [2])), [x]


def deconvolutions(draw: np.random.Generator, kind: str) -> Iterator[Case]:
    """A kernel of 3 by 2 on images of 4 by 5."""
    for padding, stride, channels in product((0, 1), (1, 2, 3), (False, True)):
        if channels and kind == "UINT8":
            continue
        x = integers(draw, kind, (2, 4, 5, 3))
        is_wide = kind == "INT16"
        outputs = 4
        scale = draw.uniform(0.005, 0.02, outputs) if channels else 0.01
        zero = 131 if kind == "UINT8" else 0
        whole = draw.integers(0, 256, (outputs, 3, 2, 3)) if kind == "UINT8" else draw.integers(-127, 128, (4, 3, 2, 3))
        height, width = (4 * stride, 5 * stride) if padding == 0 else (3 * stride + 3, 4 * stride + 2)
        tensors = [
            const(np.array([2, height, width, outputs], np.int32)),
            const(whole, "UINT8" if kind == "UINT8" else "INT8", scale=scale, zero=zero, axis=0),
            tensor(kind, x.shape),
            const(
                draw.integers(-2000, 2000, outputs), "INT64" if is_wide else "INT32",
                scale=np.multiply(STEPS[kind][0], scale),
            ),
            tensor(kind, (2, height, width, outputs), (0.0007 if is_wide else 0.13, 0 if is_wide else 11)),
        ]  # fmt: skip
        options = {"padding": padding, "strideW": stride, "strideH": stride}
        for bias in (True, False):
            slots = [0, 1, 2, 3] if bias else [0, 1, 2]
            op = Op("TRANSPOSE_CONV", slots, [4], "TransposeConvOptions", options)
            label = f"{('same', 'valid')[padding]} stride {stride} {'per channel' if channels else 'one scale'}"
            more = "" if bias else " no bias"
            yield f"transpose_conv {kind} {label}{more}", file(Graph(tensors, [op], [2], [4])), [x]
