"""Operators of StableHLO, with what NumPy computes: LiteRT has kernels of a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, file
from single import numbers, single, type_of

Case = tuple[Any, ...]


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator."""
    yield from elements(draw)
    yield from moved(draw)
    yield from joined(draw)
    yield from places(draw)
    yield from products(draw)


def case(label: str, name: str, inputs: Sequence[Any], wanted: Any, options: Any = None, **more: Any) -> Case:
    """An operator of one output."""
    wanted = np.asarray(wanted)
    content, given = single(f"STABLEHLO_{name}", inputs, type_of(wanted), options, shape=wanted.shape, **more)
    return (f"{name} {label}", content, given, [wanted])


def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x))"""
    return 1 / (1 + np.exp(-x))


ONE = {
    "ABS": np.abs, "CBRT": np.cbrt, "COSINE": np.cos, "EXPONENTIAL": np.exp, "FLOOR": np.floor, "LOG": np.log,
    "LOGISTIC": logistic, "NEGATE": np.negative, "RSQRT": lambda x: 1 / np.sqrt(x), "TANH": np.tanh,
}  # fmt: skip
TWO = {
    "ADD": np.add, "DIVIDE": np.divide, "MAXIMUM": np.maximum, "MINIMUM": np.minimum, "MULTIPLY": np.multiply,
    "POWER": np.power, "REMAINDER": np.fmod, "SUBTRACT": np.subtract,
}  # fmt: skip
DIRECTIONS = (np.equal, np.not_equal, np.greater_equal, np.greater, np.less_equal, np.less)


def elements(draw: np.random.Generator) -> Iterator[Case]:
    """Element by element."""
    for name, function in ONE.items():
        x = numbers(draw, "FLOAT32", (3, 4))
        x = np.abs(x) if name in ("LOG", "RSQRT") else x
        yield case("FLOAT32", name, [x], function(x.astype(np.float64)).astype(np.float32))
    for name, function in TWO.items():
        a, b = numbers(draw, "FLOAT32", (3, 4)), numbers(draw, "FLOAT32", (3, 4))
        a = np.abs(a) if name == "POWER" else a
        yield case("FLOAT32", name, [a, b], function(a, b))
        if name not in ("DIVIDE", "POWER"):
            a, b = numbers(draw, "INT32", (3, 4)), numbers(draw, "INT32", (3, 4))
            b = np.where(b == 0, np.int32(1), b)
            yield case("INT32", name, [a, b], function(a, b))
    for name, function in (("AND", np.bitwise_and), ("OR", np.bitwise_or)):
        for kind in ("BOOL", "INT32"):
            a, b = numbers(draw, kind, (3, 4)), numbers(draw, kind, (3, 4))
            yield case(kind, name, [a, b], function(a, b))
    a, b = numbers(draw, "INT32", (3, 4)), np.arange(12, dtype=np.int32).reshape(3, 4)
    yield case("INT32", "SHIFT_LEFT", [a, b], np.left_shift(a, b))
    low, x, high = np.full((3, 4), -1, np.float32), numbers(draw, "FLOAT32", (3, 4)), np.full((3, 4), 2, np.float32)
    yield case("FLOAT32", "CLAMP", [low, x, high], np.clip(x, -1, 2))
    yield case("numbers", "CLAMP", [low[0, 0], x, high[0, 0]], np.clip(x, -1, 2))
    y = numbers(draw, "FLOAT32", (3, 4))
    y[0] = x[0]
    for number, function in enumerate(DIRECTIONS):
        options = ("StablehloCompareOptions", {"comparisonDirection": number})
        yield case(function.__name__, "COMPARE", [x, y], function(x, y), options)
    yield case("truths", "SELECT", [x > 0, x, y], np.where(x > 0, x, y))
    for kind in (np.int32, np.bool_, np.float16):
        yield case(kind.__name__, "CONVERT", [x], x.astype(kind))


def moved(draw: np.random.Generator) -> Iterator[Case]:
    """What only moves elements."""
    x, y = numbers(draw, "FLOAT32", (2, 3, 4)), numbers(draw, "FLOAT32", (2, 2, 4))
    yield case("all", "RESHAPE", [x], x.reshape(4, 6))
    yield case("all", "TRANSPOSE", [x], x.transpose(2, 0, 1), ("StablehloTransposeOptions", {"permutation": [2, 0, 1]}))
    options: Any = ("StablehloConcatenateOptions", {"dimension": 1})
    yield case("two", "CONCATENATE", [x, y], np.concatenate([x, y], 1), options)
    said = {"startIndices": [0, 1, 0], "limitIndices": [2, 3, 4], "strides": [1, 1, 3]}
    yield case("steps", "SLICE", [x], x[0:2, 1:3, 0:4:3], ("StablehloSliceOptions", said))
    options = ("StablehloBroadcastInDimOptions", {"broadcastDimensions": [2, 0]})
    wanted = np.broadcast_to(x[0, :, :1].reshape(3, 1).T[:, None, :], (1, 2, 3)) + np.zeros((4, 2, 3), np.float32)
    yield case("turned", "BROADCAST_IN_DIM", [x[0, :, :1]], wanted, options)
    options = ("StablehloBroadcastInDimOptions", {"broadcastDimensions": []})
    yield case("number", "BROADCAST_IN_DIM", [np.float32(3)], np.full((2, 3), 3, np.float32), options)
    for axis in (0, 1):
        wanted = np.broadcast_to(np.arange((3, 4)[axis]).reshape((-1, 1) if axis == 0 else (1, -1)), (3, 4))
        options = ("StablehloIotaOptions", {"iotaDimension": axis})
        for kind in (np.int32, np.float32):
            yield case(f"{axis} {kind.__name__}", "IOTA", [], wanted.astype(kind), options)
    said = {"edgePaddingLow": [1, -1], "edgePaddingHigh": [0, 2], "interiorPadding": [2, 0]}
    x = numbers(draw, "FLOAT32", (3, 4))
    wanted = np.full((8, 5), 9, np.float32)
    wanted[1::3, :3] = x[:, 1:]
    yield case("between", "PAD", [x, np.float32(9)], wanted, ("StablehloPadOptions", said), fixed={1})


def body(name: str, kind: str) -> Graph:
    """A graph of one operator on two numbers; without one, that of the second."""
    tensors = [Tensor((), kind) for _ in range(3)]
    return Graph(tensors, [Op(name, [0, 1], [2])] if name else [], [0, 1], [2 if name else 1])


def by_graph(label: str, name: str, inputs: Sequence[Any], wanted: Any, options: Any, *, function: str) -> Case:
    """An operator that has another graph say how elements are joined."""
    kinds = [type_of(np.asarray(one)) for one in inputs]
    tensors = [Tensor(np.shape(one), kind) for one, kind in zip(inputs, kinds, strict=True)]
    count = len(tensors)
    tensors.append(Tensor(wanted.shape, type_of(wanted)))
    table, said = options
    op = Op(f"STABLEHLO_{name}", list(range(count)), [count], table, said)
    content = file(Graph(tensors, [op], list(range(count)), [count]), body(function, kinds[0]))
    return (f"{name} {label}", content, [np.asarray(one) for one in inputs], [wanted])


def joined(draw: np.random.Generator) -> Iterator[Case]:
    """REDUCE and REDUCE_WINDOW."""
    x = numbers(draw, "FLOAT32", (2, 3, 4))
    for word, function in (
        ("ADD", np.add),
        ("MAXIMUM", np.maximum),
        ("MINIMUM", np.minimum),
        ("MULTIPLY", np.multiply),
    ):
        options: Any = ("StablehloReduceOptions", {"dimensions": [0, 2], "bodySubgraphIndex": 1})
        start = np.float32(0.5)
        wanted = function(function.reduce(x, (0, 2)), start)
        yield by_graph(word, "REDUCE", [x, start], wanted, options, function=f"STABLEHLO_{word}")
        said = {
            "windowDimensions": [1, 2, 3], "windowStrides": [1, 1, 2], "baseDilations": [1, 1, 1],
            "windowDilations": [1, 1, 1], "padding": [0, 0, 1, 0, 0, 1], "bodySubgraphIndex": 1,
        }  # fmt: skip
        start = np.float32(1 if word == "MULTIPLY" else 0)
        padded = np.pad(x, [(0, 0), (1, 0), (0, 1)], constant_values=start)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (1, 2, 3))[:, :, ::2]
        wanted = function(function.reduce(windows, (3, 4, 5)), start)
        options = ("StablehloReduceWindowOptions", said)
        yield by_graph(word, "REDUCE_WINDOW", [x, start], wanted, options, function=f"STABLEHLO_{word}")


def places(draw: np.random.Generator) -> Iterator[Case]:
    """What takes slices from places, or writes them there."""
    x = numbers(draw, "FLOAT32", (4, 5, 3))
    options: Any = ("StablehloDynamicSliceOptions", {"sliceSizes": [2, 5, 1]})
    starts = [np.array(one, np.int32) for one in (3, 2, 1)]
    yield case("moved", "DYNAMIC_SLICE", [x, *starts], x[2:4, :, 1:2], options)
    update, wanted = numbers(draw, "FLOAT32", (2, 2, 3)), x.copy()
    wanted[1:3, 2:4] = update
    starts = [np.array(one, np.int32) for one in (1, 2, 4)]
    yield case("middle", "DYNAMIC_UPDATE_SLICE", [x, update, *starts], wanted)
    at = np.array([[0, 2], [3, 1], [9, 0]], np.int32)
    said = {"offsetDims": [1, 2], "collapsedSliceDims": [0], "startIndexMap": [0, 1], "indexVectorDim": 1}
    wanted = np.stack([x[0, 2:4], x[3, 1:3], x[3, 0:2]])
    yield case("slices", "GATHER", [x, at], wanted, ("StablehloGatherOptions", {**said, "sliceSizes": [1, 2, 3]}))
    rows = np.array([[2, 0], [1, 1]], np.int32)
    said = {"offsetDims": [0, 3], "collapsedSliceDims": [1], "startIndexMap": [1], "indexVectorDim": 2}
    wanted = x[:2][:, rows][:, :, :, :]
    options = ("StablehloGatherOptions", {**said, "sliceSizes": [2, 1, 3]})
    yield case("rows", "GATHER", [x, rows], wanted, options)
    for word, function in (("", None), ("STABLEHLO_ADD", np.add), ("STABLEHLO_MAXIMUM", np.maximum)):
        said = {
            "updateWindowDims": [1, 2], "insertedWindowDims": [0], "scatterDimsToOperandDims": [0, 1],
            "indexVectorDim": 1, "updateComputationSubgraphIndex": 1,
        }  # fmt: skip
        at = np.array([[0, 2], [3, 1], [2, 4]], np.int32)  # of the last one, half is outside
        update, wanted = numbers(draw, "FLOAT32", (3, 2, 3)), x.copy()
        for one, (row, column) in zip(update, at.tolist(), strict=True):
            part = wanted[row, column : column + 2]
            new = one[: len(part)]
            wanted[row, column : column + 2] = new if function is None else function(part, new)
        options = ("StablehloScatterOptions", said)
        yield by_graph(f"by {word or 'nothing'}", "SCATTER", [x, at, update], wanted, options, function=word)


def products(draw: np.random.Generator) -> Iterator[Case]:
    """DOT_GENERAL and CONVOLUTION."""
    a, b = numbers(draw, "FLOAT32", (2, 3, 4, 5)), numbers(draw, "FLOAT32", (5, 2, 3, 6))
    said = {
        "lhsBatchingDimensions": [0], "rhsBatchingDimensions": [1], "lhsContractingDimensions": [3, 1],
        "rhsContractingDimensions": [0, 2],
    }  # fmt: skip
    wanted = np.einsum("bkmc,cbkn->bmn", a.astype(float), b).astype(np.float32)
    yield case("two axes", "DOT_GENERAL", [a, b], wanted, ("StablehloDotGeneralOptions", said))
    said = {"lhsContractingDimensions": [0], "rhsContractingDimensions": [0]}
    wanted = (a[0, 0].astype(float).T @ b[0, 0, :1, :4].repeat(4, 0)[:4]).astype(np.float32)
    yield case(
        "matrices",
        "DOT_GENERAL",
        [a[0, 0], b[0, 0, :1, :4].repeat(4, 0)[:4]],
        wanted,
        ("StablehloDotGeneralOptions", said),
    )
    yield from convolutions(draw)


def convolutions(draw: np.random.Generator) -> Iterator[Case]:
    """One axis of places; axes of the input: places, batch, channels."""
    x, kernel = numbers(draw, "FLOAT32", (7, 2, 4)), numbers(draw, "FLOAT32", (3, 2, 6))
    for label, stride, between, distance, pads, turned in (
        ("plain", 1, 1, 1, (0, 0), False),
        ("strides", 2, 1, 1, (1, 2), False),
        ("dilations", 1, 1, 2, (2, 1), True),
        ("transposed", 1, 2, 1, (1, 1), False),
    ):
        said = {
            "windowStrides": [stride], "padding": list(pads), "lhsDilation": [between], "rhsDilation": [distance],
            "windowReversal": [turned], "inputBatchDimension": 1, "inputFeatureDimension": 2,
            "inputSpatialDimensions": [0], "kernelInputFeatureDimension": 1, "kernelOutputFeatureDimension": 2,
            "kernelSpatialDimensions": [0], "outputBatchDimension": 0, "outputFeatureDimension": 2,
            "outputSpatialDimensions": [1], "featureGroupCount": 2, "batchGroupCount": 1,
        }  # fmt: skip
        wide = np.zeros((between * 6 + 1, 2, 4))
        wide[::between] = x
        wide = np.pad(wide, [pads, (0, 0), (0, 0)])
        weights = kernel[::-1] if turned else kernel
        count = (len(wide) - 2 * distance - 1) // stride + 1
        wanted = np.zeros((2, count, 6))
        for place in range(count):
            for tap in range(3):
                row = wide[place * stride + tap * distance]
                wanted[:, place, :3] += row[:, :2] @ weights[tap, :, :3]
                wanted[:, place, 3:] += row[:, 2:] @ weights[tap, :, 3:]
        options = ("StablehloConvolutionOptions", said)
        yield case(label, "CONVOLUTION", [x, kernel], wanted.astype(np.float32), options, fixed={1})
