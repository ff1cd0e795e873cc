"""Small models of rows, as exporters write them, and what they compute, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

KINDS = {
    "f4": TensorProto.FLOAT,
    "f8": TensorProto.DOUBLE,
    "f2": TensorProto.FLOAT16,
    "i8": TensorProto.INT64,
    "u1": TensorProto.UINT8,
    "?": TensorProto.BOOL,
    "text": TensorProto.STRING,
    "bf16": TensorProto.BFLOAT16,
}

WEIGHTS = [np.random.default_rng(number).standard_normal((8, 8)).astype(np.float32) / 3 for number in (1, 2)]
TABLE = np.random.default_rng(3).standard_normal((10, 4)).astype(np.float32)


def written(
    nodes: Sequence[Any], inputs: dict[str, tuple], outputs: dict[str, tuple], constants: dict[str, np.ndarray]
) -> bytes:
    """``inputs``, ``outputs``: types and shapes by name."""
    tensors = [
        [helper.make_tensor_value_info(name, KINDS[kind], shape) for name, (kind, shape) in one.items()]
        for one in (inputs, outputs)
    ]
    held = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(list(nodes), "rows", *tensors, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def dense(rows: Any = "N") -> bytes:
    """x: rows of eight numbers; y: as many."""
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w1"], ["y"]),
    ]
    constants = {f"w{number}": value for number, value in enumerate(WEIGHTS)}
    return written(nodes, {"x": ("f4", [rows, 8])}, {"y": ("f4", [rows, 8])}, constants)


def dense_wanted(x: np.ndarray) -> np.ndarray:
    first, second = (one.astype(np.float64) for one in WEIGHTS)
    return np.maximum(x.astype(np.float64) @ first, 0) @ second


def looked_up() -> bytes:
    """index: a number below 10 for each row, else the run fails; row: four numbers."""
    nodes = [helper.make_node("Gather", ["table", "index"], ["row"])]
    return written(nodes, {"index": ("i8", ["N"])}, {"row": ("f4", ["N", 4])}, {"table": TABLE})


def of_two() -> bytes:
    """left, right: rows of three and of one number; sum, product: three, and one."""
    nodes = [
        helper.make_node("Add", ["left", "right"], ["sum"]),
        helper.make_node("ReduceSum", ["sum", "last"], ["total"], keepdims=0),
    ]
    taken = {"left": ("f4", ["N", 3]), "right": ("f4", ["N", 1])}
    given = {"sum": ("f4", ["N", 3]), "total": ("f4", ["N"])}
    return written(nodes, taken, given, {"last": np.array([1])})


def with_a_mean() -> bytes:
    """An output, mean, that has no rows."""
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("ReduceMean", ["x"], ["mean"], axes=[0])]
    return written(nodes, {"x": ("f4", ["N", 8])}, {"y": ("f4", ["N", 8]), "mean": ("f4", [1, 8])}, {})


def of_one_row() -> bytes:
    """x: one row, without an axis for more; total: one number."""
    nodes = [helper.make_node("ReduceSum", ["x", "axis"], ["total"], keepdims=0)]
    return written(nodes, {"x": ("f4", [3, 5])}, {"total": ("f4", [5])}, {"axis": np.array([0])})


def of_any_length() -> bytes:
    """x: rows of any length; y: the same, doubled."""
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    return written(nodes, {"x": ("f4", ["N", "S"])}, {"y": ("f4", ["N", "S"])}, {})


def casts(kind: str) -> Callable[[], bytes]:
    def build() -> bytes:
        nodes = [helper.make_node("Cast", ["x"], ["y"], to=KINDS[kind])]
        return written(nodes, {"x": ("f4", ["N", 2])}, {"y": (kind, ["N", 2])}, {})

    return build


def flags() -> bytes:
    """x: a number a row; y: whether it is above 0; z: as an integer."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["y"]),
        helper.make_node("Cast", ["x"], ["z"], to=TensorProto.INT64),
    ]
    constants = {"zero": np.float32(0)}
    return written(nodes, {"x": ("f4", ["N"])}, {"y": ("?", ["N"]), "z": ("i8", ["N"])}, constants)


def texts() -> bytes:
    """x, y: a text a row."""
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    return written(nodes, {"x": ("text", ["N"])}, {"y": ("text", ["N"])}, {})


def classifier() -> bytes:
    """image: B,3,8,8; logits: ten numbers a row. That of docs/ray.md."""
    nodes = [helper.make_node("Flatten", ["image"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["logits"])]
    weights = np.random.default_rng(0).standard_normal((192, 10)).astype(np.float32)
    return written(nodes, {"image": ("f4", ["B", 3, 8, 8])}, {"logits": ("f4", ["B", 10])}, {"w": weights})


BUILDERS: dict[str, Callable[[], bytes]] = {
    "dense": dense,
    "dense1": lambda: dense(1),
    "dense16": lambda: dense(16),
    "looked_up": looked_up,
    "of_two": of_two,
    "with_a_mean": with_a_mean,
    "of_one_row": of_one_row,
    "of_any_length": of_any_length,
    "flags": flags,
    "texts": texts,
    **{f"casts_{kind}": casts(kind) for kind in ("bf16", "f2", "i8", "?", "u1")},
}
