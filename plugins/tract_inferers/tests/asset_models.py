"""Policies as files: ONNX models, and archives as an older engine wrote them, built byte by byte."""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = np.array([[1, 2, -1], [3, 1, 2]], np.float32) / 4


def onnx_policy(batch: str | int = "batch") -> bytes:
    """act = tanh(obs @ WEIGHTS + noise); obs: 2, noise: 3, for any number of agents, or for ``batch`` of them."""
    nodes = [
        helper.make_node("MatMul", ["obs", "w"], ["product"]),
        helper.make_node("Add", ["product", "noise"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["act"]),
    ]
    inputs = [_value("obs", batch, 2), _value("noise", batch, 3)]
    return _model(nodes, inputs, [_value("act", batch, 3)], {"w": WEIGHTS})


def trees_policy() -> bytes:
    """act = 1 where obs <= 0.5, else 2: a tree, an operator that only ONNX has."""
    tree = helper.make_node(
        "TreeEnsembleRegressor",
        ["obs"],
        ["act"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_values=[0.5, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        target_treeids=[0, 0],
        target_nodeids=[1, 2],
        target_ids=[0, 0],
        target_weights=[1.0, 2.0],
    )
    return _model([tree], [_value("obs", "batch", 1)], [_value("act", "batch", 1)], {})


def _model(nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: Mapping[str, np.ndarray]) -> bytes:
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "policy", inputs, outputs, tensors)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _value(name: str, *shape: str | int) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


LABEL = "StatefulPartitionedCall/policy/dense/MatMul/ReadVariableOp:0.0"

OLD_TEXT = f"""\
version 1.0;

extension tract_registry tract_core;
extension tract_symbol N;
extension tract_symbol unk__126;

fragment tract_core_properties(
) -> (properties: (string, tensor<scalar>)[])
{{
  properties = [("tract_nnef_ser_version", "0.21.13"), ("tract_nnef_format_version", "beta1")];
}}

graph network(epsilon_0, vector_observation_0) -> (Identity) {{
  epsilon_0 = tract_core_external(shape = [N, 3], datum_type = "F32");
  vector_observation_0 = tract_core_external(shape = [N, 2], datum_type = "F32");
  StatefulPartitionedCall_policy_dense_MatMul_ReadVariableOp_0 = variable<scalar>(label = "{LABEL}", shape = [2, 3]);
  product = matmul(vector_observation_0, StatefulPartitionedCall_policy_dense_MatMul_ReadVariableOp_0, \
transposeA = false, transposeB = false);
  sum = add(product, epsilon_0);
  Identity = tanh(sum);
}}
"""


def old_archive() -> bytes:
    """The policy of `onnx_policy`, in a tar as engines wrote it in 2024: nested labels, and names that end with _0."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, file in {"graph.nnef": OLD_TEXT.encode(), f"{LABEL}.dat": tensor_file(WEIGHTS)}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(file), 315532800, 0o644
            tar.addfile(entry, io.BytesIO(file))
    end = len(content.getvalue().rstrip(b"\0"))
    return content.getvalue()[: end + -end % 512 + 1024]


def tensor_file(array: np.ndarray) -> bytes:
    """The content of a ``.dat`` file: 128 bytes that say what it is, then the elements."""
    sizes = [*array.shape, *[0] * (8 - array.ndim)]
    head = struct.pack("<BBBBII8IIHH", 0x4E, 0xEF, 1, 0, array.nbytes, array.ndim, *sizes, 32, 0, 0)
    return head.ljust(128, b"\0") + array.astype("<f4").tobytes()


def expected(observations: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """What the policy says, in f64."""
    return np.tanh(observations.astype(np.float64) @ WEIGHTS.astype(np.float64) + noise)
