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
