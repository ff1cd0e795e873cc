"""Operators of networks on floats: products, convolutions, pools, norms."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file
from single import Case, numbers, single


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator."""
    yield from norms(draw)
    yield from pools(draw)
    yield from products(draw)
    yield from volumes(draw)
    yield from transposed(draw)


def ints(values: Any, kind: str = "int32") -> Any:
    """Integers."""
    return np.array(values, kind)


def norms(draw: np.random.Generator) -> Iterator[Case]:
    """SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION."""
    for shape in ((5,), (2, 5), (2, 3, 1), (1, 2, 3, 7)):
        x = numbers(draw, "FLOAT32", shape)
        more: Any = {"ranks": len(shape), "opened": {0} if len(shape) == 2 else ()}
        for beta in (1.0, 0.5):
            yield (
                f"SOFTMAX {len(shape)} {beta}",
                *single("SOFTMAX", [x], options=("SoftmaxOptions", {"beta": beta}), **more),
            )
        yield (f"LOG_SOFTMAX {len(shape)}", *single("LOG_SOFTMAX", [x], **more))
        if len(shape) > 1:
            options = ("L2NormOptions", {})
            yield (f"L2_NORMALIZATION {len(shape)}", *single("L2_NORMALIZATION", [x], options=options, **more))
    x = np.array([[1000.0, 1001, -1000], [0, 0, 0]], np.float32)
    yield ("SOFTMAX large", *single("SOFTMAX", [x], options=("SoftmaxOptions", {"beta": 1.0}), ranks=2))
    yield ("LOG_SOFTMAX large", *single("LOG_SOFTMAX", [x], ranks=2))
    yield ("L2_NORMALIZATION zeros", *single("L2_NORMALIZATION", [0 * x], options=("L2NormOptions", {}), ranks=2))
    x = numbers(draw, "FLOAT32", (1, 2, 3, 7))
    for radius, alpha, beta, bias in ((1, 0.5, 0.75, 1.0), (5, 1e-2, 0.5, 2.0), (0, 1.0, 1.0, 1.0)):
        said = {"radius": radius, "alpha": alpha, "beta": beta, "bias": bias}
        options = ("LocalResponseNormalizationOptions", said)
        name = "LOCAL_RESPONSE_NORMALIZATION"
        yield (f"{name} {radius}", *single(name, [x], options=options, ranks=4, opened={0}))


def pools(draw: np.random.Generator) -> Iterator[Case]:
    """By padding, windows, strides and what is fused."""
    x = numbers(draw, "FLOAT32", (2, 7, 6, 3))
    for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        for padding, (height, width, stride, activation) in product(
            (0, 1), ((2, 3, 1, 0), (3, 2, 2, 1), (7, 6, 1, 3), (1, 1, 3, 2))
        ):
            said = {
                "padding": padding, "filterHeight": height, "filterWidth": width, "strideH": stride, "strideW": stride,
                "fusedActivationFunction": activation,
            }  # fmt: skip
            label = f"{name} {('same', 'valid')[padding]} {height} {width} stride {stride} activation {activation}"
            yield (label, *single(name, [x], options=("Pool2DOptions", said), ranks=4))
        said = {"filterHeight": 2, "filterWidth": 2, "strideH": 2, "strideW": 2}
        yield (f"{name} open", *single(name, [x], options=("Pool2DOptions", said), ranks=4, opened={0}))


def products(draw: np.random.Generator) -> Iterator[Case]:
    """FULLY_CONNECTED and BATCH_MATMUL."""
    weights, bias = numbers(draw, "FLOAT32", (4, 5)), numbers(draw, "FLOAT32", (4,))
    for shape, keeps in (((3, 5), False), ((3, 5), True), ((2, 3, 5), False), ((2, 3, 5), True), ((2, 10), False)):
        x = numbers(draw, "FLOAT32", shape)
        for given, activation in (([x, weights, bias], 1), ([x, weights, bias], 3), ([x, weights, None], 0)):
            said = {"keepNumDims": keeps, "fusedActivationFunction": activation}
            label = f"FULLY_CONNECTED {shape} keeps {keeps} activation {activation}"
            more: Any = {"options": ("FullyConnectedOptions", said), "ranks": len(shape) if keeps else 2}
            yield (label, *single("FULLY_CONNECTED", given, fixed={1, 2}, **more))
    x = numbers(draw, "FLOAT32", (3, 5))
    options = ("FullyConnectedOptions", {})
    yield (
        "FULLY_CONNECTED open",
        *single("FULLY_CONNECTED", [x, weights, bias], options=options, fixed={1, 2}, opened={0}, ranks=2),
    )
    yield ("FULLY_CONNECTED weights given", *single("FULLY_CONNECTED", [x, weights, bias], options=options, ranks=2))
    yield ("FULLY_CONNECTED two inputs", *single("FULLY_CONNECTED", [x, weights], options=options, ranks=2))
    for adj_x, adj_y in product((False, True), repeat=2):
        for first, second in (((), ()), ((2,), (2,)), ((2, 1), (3,)), ((2, 1, 3), (1, 2, 1))):
            a = numbers(draw, "FLOAT32", (*first, *((3, 4) if adj_x else (4, 3))))
            b = numbers(draw, "FLOAT32", (*second, *((2, 3) if adj_y else (3, 2))))
            options = ("BatchMatMulOptions", {"adjX": adj_x, "adjY": adj_y})
            label = f"BATCH_MATMUL {adj_x} {adj_y} {first} {second}"
            rank = max(len(first), len(second)) + 2
            yield (label, *single("BATCH_MATMUL", [a, b], options=options, ranks=rank))
    a, b = numbers(draw, "FLOAT32", (2, 4, 3)), numbers(draw, "FLOAT32", (2, 3, 5))
    options = ("BatchMatMulOptions", {})
    yield ("BATCH_MATMUL open", *single("BATCH_MATMUL", [a, b], options=options, opened={0, 1}, ranks=3))
    yield ("BATCH_MATMUL constant", *single("BATCH_MATMUL", [a, b], options=options, fixed={1}, ranks=3))


def volumes(draw: np.random.Generator) -> Iterator[Case]:
    """CONV_3D, CONV_3D_TRANSPOSE, DILATE."""
    x, kernel = numbers(draw, "FLOAT32", (2, 5, 4, 6, 3)), numbers(draw, "FLOAT32", (2, 3, 1, 3, 4))
    bias = numbers(draw, "FLOAT32", (4,))
    for padding, stride, dilation, activation in ((0, 1, 1, 0), (1, 2, 1, 1), (0, 2, 1, 3), (1, 1, 2, 0)):
        said = {
            "padding": padding, "strideD": stride, "strideH": stride, "strideW": 1, "dilationDFactor": dilation,
            "fusedActivationFunction": activation,
        }  # fmt: skip
        label = f"CONV_3D {padding} {stride} {dilation} {activation}"
        given = [x, kernel, bias if activation != 3 else None]
        yield (label, *single("CONV_3D", given, options=("Conv3DOptions", said), fixed={1, 2}, ranks=5))
    back = numbers(draw, "FLOAT32", (2, 2, 2, 5, 3)), numbers(draw, "FLOAT32", (2, 3, 1, 4, 3))
    for padding, sizes in ((0, (4, 4, 5)), (1, (4, 5, 5)), (0, (3, 3, 5))):
        said = {"padding": padding, "strideD": 2, "strideH": 2, "strideW": 1}
        given = [ints([2, *sizes, 4]), back[1], back[0], bias]
        label = f"CONV_3D_TRANSPOSE {padding} {sizes}"
        yield (label, *single("CONV_3D_TRANSPOSE", given, options=("Conv3DOptions", said), fixed={0, 1, 3}, ranks=5))
    for kind in ("FLOAT32", "INT32", "INT8", "INT64"):
        given = [numbers(draw, kind, (2, 3, 1)), ints([2, 3, 4]), numbers(draw, kind, ())]
        yield (f"DILATE {kind}", *single("DILATE", given, kind, fixed={1, 2}, ranks=3))


def transposed(draw: np.random.Generator) -> Iterator[Case]:
    """TRANSPOSE_CONV."""
    x, bias = numbers(draw, "FLOAT32", (2, 3, 4, 2)), numbers(draw, "FLOAT32", (3,))
    for padding, kernel, stride, sizes in (
        (0, (3, 3), 2, (6, 8)),
        (0, (3, 3), 2, (5, 7)),
        (1, (3, 3), 2, (7, 9)),
        (1, (2, 4), 3, (8, 13)),
        (0, (1, 1), 2, (6, 8)),
        (0, (2, 2), 1, (3, 4)),
        (1, (2, 3), 2, (7, 10)),
    ):
        said = {"padding": padding, "strideH": stride, "strideW": stride}
        weights = numbers(draw, "FLOAT32", (3, *kernel, 2))
        given = [ints([2, *sizes, 3]), weights, x]
        label = f"TRANSPOSE_CONV {padding} {kernel} {stride} {sizes}"
        options = ("TransposeConvOptions", said)
        yield (label, *single("TRANSPOSE_CONV", given, options=options, fixed={0, 1}, ranks=4))
        more = ("TransposeConvOptions", {**said, "fusedActivationFunction": 1})
        yield (
            f"{label} bias",
            *single("TRANSPOSE_CONV", [*given, bias], options=more, fixed={0, 1, 3}, ranks=4, version=4),
        )
    yield ("TRANSPOSE_CONV computed", *computed(draw))


def computed(draw: np.random.Generator) -> tuple[bytes, list[Any]]:
    """A shape whose batch is that of the data, as converters write it."""
    tensors = [
        Tensor((2, 3, 4, 2), signature=(-1, 3, 4, 2)),
        Tensor((4,), "INT32"),
        const(np.array([0], np.int32)),
        const(np.array([1], np.int32)),
        const(np.array([1], np.int32)),
        Tensor((), "INT32"),
        *(const(np.array(size, np.int32)) for size in (6, 8, 3)),
        Tensor((4,), "INT32"),
        const(numbers(draw, "FLOAT32", (3, 2, 2, 2))),
        Tensor((1,) * 4),
    ]
    ops = [
        Op("SHAPE", [0], [1], "ShapeOptions", {"outType": 2}),
        Op("STRIDED_SLICE", [1, 2, 3, 4], [5], "StridedSliceOptions", {"shrinkAxisMask": 1}),
        Op("PACK", [5, 6, 7, 8], [9], "PackOptions", {"valuesCount": 4}),
        Op("TRANSPOSE_CONV", [9, 10, 0], [11], "TransposeConvOptions", {"strideH": 2, "strideW": 2}),
    ]
    return file(Graph(tensors, ops, [0], [11])), [numbers(draw, "FLOAT32", (2, 3, 4, 2))]
