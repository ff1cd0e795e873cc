"""Policies as ONNX files, as exporters write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Size = int | str | None

KINDS = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.bool_): TensorProto.BOOL,
}


def weights(*shape: int, seed: int = 0, kind: Any = np.float32) -> np.ndarray[Any, Any]:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) / 3).astype(kind)


def tensor(name: str, shape: Sequence[Size], kind: Any = np.float32) -> Any:
    return helper.make_tensor_value_info(name, KINDS[np.dtype(kind)], list(shape))


def onnx_file(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], constants: dict[str, Any] | None = None
) -> bytes:
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "policy", list(inputs), list(outputs), held)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    return helper.make_node(kind, list(inputs), list(outputs), **attributes)


def mlp(batch: Size, *, kind: Any = np.float32) -> bytes:
    """From ``obs`` [batch, 64] to ``action`` [batch, 8]."""
    nodes = [
        node("Gemm", ["obs", "w", "b"], ["hidden"]),
        node("Tanh", ["hidden"], ["squashed"]),
        node("MatMul", ["squashed", "v"], ["action"]),
    ]
    constants = {"w": weights(64, 16, kind=kind), "b": weights(16, kind=kind), "v": weights(16, 8, kind=kind)}
    return onnx_file(nodes, [tensor("obs", [batch, 64], kind)], [tensor("action", [batch, 8], kind)], constants)


def convolution(batch: Size, shape: Sequence[int]) -> bytes:
    """From ``obs`` [batch, 2, 4, 4] to ``action`` [batch, 5], by a convolution and a reshape to ``shape``."""
    nodes = [
        node("Conv", ["obs", "kernel"], ["features"], pads=[1, 1, 1, 1]),
        node("Reshape", ["features", "shape"], ["flat"]),
        node("MatMul", ["flat", "w"], ["action"]),
    ]
    constants = {"kernel": weights(3, 2, 3, 3), "shape": np.array(shape), "w": weights(48, 5)}
    return onnx_file(nodes, [tensor("obs", [batch, 2, 4, 4])], [tensor("action", [batch, 5])], constants)


def lstm(obs: Size, hidden: Size, cell: Size) -> bytes:
    """From ``obs`` [obs, 8], ``h`` [1, hidden, 6], ``c`` [1, cell, 6] to ``action`` [obs, 3], ``h_out``, ``c_out``."""
    nodes = [
        node("Unsqueeze", ["obs", "first"], ["x"]),
        node("LSTM", ["x", "w", "r", "b", "", "h", "c"], ["y", "h_out", "c_out"], hidden_size=6),
        node("Squeeze", ["y", "both"], ["z"]),
        node("MatMul", ["z", "v"], ["action"]),
    ]
    constants = {"w": weights(1, 24, 8), "r": weights(1, 24, 6), "b": weights(1, 48), "v": weights(6, 3)}
    constants |= {"first": np.array([0]), "both": np.array([0, 1])}
    inputs = [tensor("obs", [obs, 8]), tensor("h", [1, hidden, 6]), tensor("c", [1, cell, 6])]
    outputs = [tensor("action", [obs, 3]), tensor("h_out", [1, hidden, 6]), tensor("c_out", [1, cell, 6])]
    return onnx_file(nodes, inputs, outputs, constants)


def two_grus(batch: Size) -> bytes:
    """From ``obs`` [batch, 8] and ``h`` [2, batch, 4] to ``action``, an i64 for each, and ``h_out``."""
    more = {"linear_before_reset": 1, "hidden_size": 4}
    nodes = [
        node("Unsqueeze", ["obs", "first"], ["x"]),
        node("Split", ["h", "ones"], ["h0", "h1"], axis=0),
        node("GRU", ["x", "w0", "r0", "b0", "", "h0"], ["y0", "k0"], **more),
        node("Squeeze", ["y0", "second"], ["x1"]),
        node("GRU", ["x1", "w1", "r1", "b1", "", "h1"], ["y1", "k1"], **more),
        node("Concat", ["k0", "k1"], ["h_out"], axis=0),
        node("Squeeze", ["y1", "both"], ["z"]),
        node("MatMul", ["z", "v"], ["logits"]),
        node("ArgMax", ["logits"], ["action"], axis=1, keepdims=0),
    ]
    constants = {"first": np.array([0]), "second": np.array([1]), "both": np.array([0, 1]), "ones": np.array([1, 1])}
    constants |= {"w0": weights(1, 12, 8), "r0": weights(1, 12, 4), "b0": weights(1, 24), "v": weights(4, 5)}
    constants |= {"w1": weights(1, 12, 4), "r1": weights(1, 12, 4, seed=2), "b1": weights(1, 24, seed=3)}
    inputs = [tensor("obs", [batch, 8]), tensor("h", [2, batch, 4])]
    return onnx_file(nodes, inputs, [tensor("action", [batch], np.int64), tensor("h_out", [2, batch, 4])], constants)


def masked(batch: Size) -> bytes:
    """From ``obs`` [batch, 6] and ``mask`` to probabilities and the best action; only for what the mask allows."""
    nodes = [
        node("MatMul", ["obs", "w"], ["logits"]),
        node("Where", ["mask", "logits", "never"], ["allowed"]),
        node("Softmax", ["allowed"], ["odds"], axis=-1),
        node("ArgMax", ["allowed"], ["best"], axis=-1),
    ]
    inputs = [tensor("obs", [batch, 6]), tensor("mask", [batch, 5], np.bool_)]
    outputs = [tensor("odds", [batch, 5]), tensor("best", [batch, 1], np.int64)]
    return onnx_file(nodes, inputs, outputs, {"w": weights(6, 5), "never": np.array(-1e9, np.float32)})


def normed(batch: Size) -> bytes:
    """From ``obs`` [batch, 6] to ``action`` [batch, 5], with a batch normalisation of known statistics."""
    nodes = [
        node("MatMul", ["obs", "w"], ["x"]),
        node("BatchNormalization", ["x", "scale", "bias", "mean", "var"], ["action"]),
    ]
    constants = {name: np.abs(weights(5, seed=seed)) for seed, name in enumerate(("scale", "bias", "mean", "var"))}
    io = [tensor("obs", [batch, 6])], [tensor("action", [batch, 5])]
    return onnx_file(nodes, *io, {"w": weights(6, 5), **constants})


def embedded(batch: Size) -> bytes:
    """From ``ids`` [batch, 3], i64, to the mean of what a table has at them, [batch, 4]."""
    nodes = [
        node("Gather", ["table", "ids"], ["found"], axis=0),
        node("ReduceMean", ["found"], ["action"], axes=[1], keepdims=0),
    ]
    io = [tensor("ids", [batch, 3], np.int64)], [tensor("action", [batch, 4])]
    return onnx_file(nodes, *io, {"table": weights(7, 4)})


def with_constants(batch: Size) -> bytes:
    """From ``obs`` [batch, 6] to ``action``, beside outputs that are the same for all, as some engines want them."""
    nodes = [
        node("Identity", ["version"], ["version_number"]),
        node("MatMul", ["obs", "w"], ["action"]),
        node("Identity", ["size"], ["action_shape"]),
    ]
    outputs = [tensor("version_number", [1]), tensor("action", [batch, 5]), tensor("action_shape", [1, 1], np.int64)]
    constants = {"w": weights(6, 5), "version": np.array([3], np.float32), "size": np.array([[5]])}
    return onnx_file(nodes, [tensor("obs", [batch, 6])], outputs, constants)


def between(batch: Size, nodes: Sequence[Any], constants: dict[str, Any] | None = None) -> bytes:
    """From ``obs`` [batch, 6] to ``action``, with these nodes between ``x`` [batch, 5] and ``action``."""
    held = {"w": weights(6, 5), "zero": np.array(0), "one": np.array(1), "ones": np.array([1]), "zeros": np.array([0])}
    io = [tensor("obs", [batch, 6])], [tensor("action", [None, None])]
    return onnx_file([node("MatMul", ["obs", "w"], ["x"]), *nodes], *io, {**held, **(constants or {})})


def picked_by_row(batch: Size) -> bytes:
    """The largest of ``x``, picked by the number of the row and its position, as [batch, 1]."""
    nodes = [
        node("ArgMax", ["x"], ["best"], axis=1, keepdims=1),
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["rows"]),
        node("Range", ["zero", "rows", "one"], ["row"]),
        node("Unsqueeze", ["row", "ones"], ["column"]),
        node("Concat", ["column", "best"], ["places"], axis=1),
        node("GatherND", ["x", "places"], ["values"]),
        node("Unsqueeze", ["values", "ones"], ["action"]),
    ]
    return between(batch, nodes)


def branch(name: str, *nodes: Any) -> Any:
    return helper.make_graph(list(nodes), name, [], [tensor(nodes[-1].output[0], [None, None])])


def begins_at_zero(batch: Size) -> bytes:
    """From ``obs`` [batch, 4, 8] to ``action`` [batch, 6], by an LSTM over axis 1 with constant states at first."""
    nodes = [
        node("Transpose", ["obs"], ["x"], perm=[1, 0, 2]),
        node("LSTM", ["x", "w", "r", "b", "", "zeros", "zeros"], ["_", "last", "__"], hidden_size=6),
        node("Squeeze", ["last", "first"], ["action"]),
    ]
    constants = {"w": weights(1, 24, 8), "r": weights(1, 24, 6), "b": weights(1, 48), "first": np.array([0])}
    io = [tensor("obs", [batch, 4, 8])], [tensor("action", [batch, 6])]
    return onnx_file(nodes, *io, {**constants, "zeros": np.zeros((1, 1, 6), np.float32)})


def split_in_heads() -> bytes:
    """From ``obs`` [1, 3, 6] to ``action`` [1, 3, 2, 3], with sizes of one agent in a reshape, and it in the middle."""
    nodes = [
        node("Transpose", ["obs"], ["x"], perm=[1, 0, 2]),
        node("Reshape", ["x", "sizes"], ["heads"]),
        node("Transpose", ["heads"], ["turned"], perm=[2, 1, 3, 0, 4]),
        node("Squeeze", ["turned", "last"], ["action"]),
    ]
    constants = {"sizes": np.array([1, 3, 1, 2, 3]), "last": np.array([3])}
    return onnx_file(nodes, [tensor("obs", [1, 3, 6])], [tensor("action", [1, 3, 2, 3])], constants)
