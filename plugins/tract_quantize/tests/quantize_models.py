"""Small networks with weights that are drawn, as ONNX, and data for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]

NODE = helper.make_node


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """Weights, about as large as they are where as many are summed."""
    count = int(np.prod(shape[1:])) if len(shape) > 1 else 1
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale / np.sqrt(count)).astype(np.float32)


def made(
    nodes: Sequence[Any], weights: Mapping[str, Array], inputs: Mapping[str, Sequence[Any]], outputs: Mapping[str, Any]
) -> bytes:
    """A model of ONNX. ``inputs``, ``outputs``: their shapes, by name."""
    described = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ports.items()]
        for ports in (inputs, outputs)
    ]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(list(nodes), "network", *described, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def mlp() -> bytes:
    """relu(x W + b) V + c"""
    weights = {"w": drawn(24, 64), "b": drawn(64), "v": drawn(64, 10, seed=1), "c": drawn(10, seed=1)}
    nodes = [
        NODE("Gemm", ["x", "w", "b"], ["hidden"]),
        NODE("Relu", ["hidden"], ["bent"]),
        NODE("Gemm", ["bent", "v", "c"], ["y"]),
    ]
    return made(nodes, weights, {"x": ["B", 24]}, {"y": ["B", 10]})


def residual() -> bytes:
    """Convolutions with a residual sum, a pooling, a concatenation, and a product of matrices."""
    weights = {
        "w0": drawn(8, 3, 3, 3),
        "b0": drawn(8),
        "w1": drawn(8, 8, 3, 3, seed=1),
        "b1": drawn(8, seed=1),
        "w2": drawn(8, 8, 1, 1, seed=2),
        "b2": drawn(8, seed=2),
        "v": drawn(16, 5, seed=3),
        "c": drawn(5, seed=3),
    }
    nodes = [
        NODE("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        NODE("Relu", ["c0"], ["r0"]),
        NODE("Conv", ["r0", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        NODE("Add", ["c1", "r0"], ["sum"]),
        NODE("Relu", ["sum"], ["r1"]),
        NODE("MaxPool", ["r1"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        NODE("Conv", ["p", "w2", "b2"], ["c2"]),
        NODE("Concat", ["p", "c2"], ["both"], axis=1),
        NODE("GlobalAveragePool", ["both"], ["mean"]),
        NODE("Flatten", ["mean"], ["flat"]),
        NODE("Gemm", ["flat", "v", "c"], ["y"]),
    ]
    return made(nodes, weights, {"x": ["B", 3, 8, 8]}, {"y": ["B", 5]})


def depthwise() -> bytes:
    """An inverted residual block, with bounds at 0 and 6."""
    weights = {
        "w0": drawn(24, 6, 1, 1),
        "b0": drawn(24),
        "w1": drawn(24, 1, 3, 3, seed=1, scale=3),
        "b1": drawn(24, seed=1),
        "w2": drawn(6, 24, 1, 1, seed=2),
        "b2": drawn(6, seed=2),
        "low": np.array(0, np.float32),
        "high": np.array(6, np.float32),
    }
    nodes = [
        NODE("Conv", ["x", "w0", "b0"], ["c0"]),
        NODE("Clip", ["c0", "low", "high"], ["r0"]),
        NODE("Conv", ["r0", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1], strides=[2, 2], group=24),
        NODE("Clip", ["c1", "low", "high"], ["r1"]),
        NODE("Conv", ["r1", "w2", "b2"], ["y"]),
    ]
    return made(nodes, weights, {"x": ["B", 6, "H", "W"]}, {"y": ["B", 6, "h", "w"]})


def detector() -> bytes:
    """SiLU, parts that are concatenated, and a tensor that is made finer and concatenated with another one."""
    weights = {
        "w0": drawn(8, 3, 3, 3),
        "b0": drawn(8),
        "w1": drawn(4, 4, 3, 3, seed=1),
        "b1": drawn(4, seed=1),
        "w2": drawn(6, 12, 1, 1, seed=2, scale=2),
        "b2": drawn(6, seed=2),
        "w3": drawn(6, 6, 3, 3, seed=3, scale=2),
        "b3": drawn(6, seed=3),
        "w4": drawn(5, 12, 1, 1, seed=4),
        "b4": drawn(5, seed=4),
        "halves": np.array([4, 4], np.int64),
        "double": np.array([1, 1, 2, 2], np.float32),
    }
    same = {"pads": [1, 1, 1, 1]}
    nodes = [
        NODE("Conv", ["x", "w0", "b0"], ["c0"], **same),
        *silu("c0", "s0"),
        NODE("Split", ["s0", "halves"], ["left", "right"], axis=1),
        NODE("Conv", ["right", "w1", "b1"], ["c1"], **same),
        *silu("c1", "s1"),
        NODE("Add", ["right", "s1"], ["sum"]),
        NODE("Concat", ["left", "right", "sum"], ["all"], axis=1),
        NODE("Conv", ["all", "w2", "b2"], ["c2"]),
        *silu("c2", "s2"),
        NODE("Conv", ["s2", "w3", "b3"], ["c3"], strides=[2, 2], **same),
        *silu("c3", "s3"),
        NODE(
            "Resize",
            ["s3", "", "double"],
            ["fine"],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        NODE("Concat", ["fine", "s2"], ["both"], axis=1),
        NODE("Conv", ["both", "w4", "b4"], ["y"]),
    ]
    return made(nodes, weights, {"x": ["B", 3, "H", "W"]}, {"y": ["B", 5, "h", "w"]})


def silu(given: str, result: str) -> list[Any]:
    """A number times its sigmoid."""
    return [NODE("Sigmoid", [given], [f"{result}.gate"]), NODE("Mul", [given, f"{result}.gate"], [result])]


def sound() -> bytes:
    """Convolutions along one axis of any length."""
    weights = {"w0": drawn(8, 1, 9), "b0": drawn(8), "w1": drawn(8, 8, 3, seed=1)}
    nodes = [
        NODE("Conv", ["x", "w0", "b0"], ["c0"], pads=[4, 4], strides=[2]),
        NODE("Relu", ["c0"], ["r0"]),
        NODE("Conv", ["r0", "w1"], ["y"], pads=[1, 1]),
    ]
    return made(nodes, weights, {"x": ["B", 1, "T"]}, {"y": ["B", 8, "t"]})


def attention() -> bytes:
    """One head, with a norm in front, a residual sum, and softmax in floats."""
    weights = {
        "q": drawn(32, 32),
        "k": drawn(32, 32, seed=1),
        "v": drawn(32, 32, seed=2),
        "o": drawn(32, 32, seed=3),
        "one": np.ones(32, np.float32),
        "bias": drawn(32, seed=4),
    }
    nodes = [
        NODE("LayerNormalization", ["x", "one", "bias"], ["n"]),
        *[NODE("MatMul", ["n", one], [f"n{one}"]) for one in "qkv"],
        NODE("Transpose", ["nk"], ["turned"], perm=[0, 2, 1]),
        NODE("MatMul", ["nq", "turned"], ["scores"]),
        NODE("Softmax", ["scores"], ["weights"]),
        NODE("MatMul", ["weights", "nv"], ["mixed"]),
        NODE("MatMul", ["mixed", "o"], ["projected"]),
        NODE("Add", ["x", "projected"], ["y"]),
    ]
    return made(nodes, weights, {"x": ["B", "S", 32]}, {"y": ["B", "S", 32]})


def shared() -> bytes:
    """Two products by the same weights, of data of other sizes."""
    nodes = [NODE("MatMul", ["x", "w"], ["h"]), NODE("Relu", ["h"], ["r"]), NODE("MatMul", ["r", "w"], ["y"])]
    return made(nodes, {"w": drawn(48, 48)}, {"x": ["B", 48]}, {"y": ["B", 48]})


def two_inputs() -> bytes:
    """a W + b V"""
    nodes = [NODE("MatMul", ["a", "w"], ["p"]), NODE("MatMul", ["b", "v"], ["q"]), NODE("Add", ["p", "q"], ["y"])]
    weights = {"w": drawn(40, 32), "v": drawn(40, 32, seed=1)}
    return made(nodes, weights, {"a": ["B", 40], "b": ["B", 40]}, {"y": ["B", 32]})


BUILDERS: Mapping[str, Callable[[], bytes]] = {
    one.__name__: one for one in (mlp, residual, depthwise, detector, sound, attention, shared, two_inputs)
}

SHAPES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "mlp": {"x": (16, 24)},
    "residual": {"x": (4, 3, 8, 8)},
    "depthwise": {"x": (2, 6, 9, 7)},
    "detector": {"x": (2, 3, 10, 8)},
    "sound": {"x": (3, 1, 101)},
    "attention": {"x": (2, 11, 32)},
    "shared": {"x": (7, 48)},
    "two_inputs": {"a": (5, 40), "b": (5, 40)},
}


def turns(name: str, count: int = 6, seed: int = 0) -> list[dict[str, Array]]:
    """Data for a network."""
    generator = np.random.default_rng(seed)
    return [
        {one: generator.standard_normal(shape).astype(np.float32) for one, shape in SHAPES[name].items()}
        for _ in range(count)
    ]
