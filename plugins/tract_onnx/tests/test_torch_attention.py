"""Attention as PyTorch's exporter writes it: heads repeated by Expand, both factors scaled, and NaN made 0."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_check import expected, load

import tract_core as tract

pytest.importorskip("tract_cpu")

HEADS, SHARED, SIZE = 4, 2, 8


def exported():
    """One layer of ``scaled_dot_product_attention`` behind a past, as torch.onnx.export(dynamo=True) writes it."""
    constants = {
        "one": np.array([1]), "two": np.array([2]), "all": np.array([-1]), "size": np.array([SIZE]),
        "heads": np.array([SHARED]), "times": np.array([HEADS // SHARED]), "whole": np.array([HEADS]),
        "scale": np.array(SIZE**-0.25, np.float32), "zero": np.array(0, np.float32),
        "never": np.array(-np.inf, np.float32),
    }  # fmt: skip
    nodes: list = []

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs.split(), output.split(), **attributes))

    node("Shape", "q", "b", start=0, end=1)
    for x in "kv":
        node("Concat", f"past_{x} {x}", f"present_{x}", axis=2)
        node("Shape", f"present_{x}", f"t_{x}", start=2, end=3)
        node("Unsqueeze", f"present_{x} two", f"apart_{x}")
        node("Concat", f"b heads times t_{x} size", f"wide_{x}", axis=0)
        node("Expand", f"apart_{x} wide_{x}", f"repeated_{x}")
        node("Concat", f"b whole t_{x} size", f"joined_{x}", axis=0)
        node("Reshape", f"repeated_{x} joined_{x}", f"all_{x}")
    node("Concat", "all t_k size", "three", axis=0)
    node("Reshape", "all_k three", "flat")
    node("Transpose", "flat", "turned", perm=[0, 2, 1])
    node("Concat", "b whole size t_k", "four", axis=0)
    node("Reshape", "turned four", "keys")
    node("Mul", "q scale", "q_scaled")
    node("Mul", "keys scale", "k_scaled")
    node("Where", "mask zero never", "bias")
    node("MatMul", "q_scaled k_scaled", "product")
    node("Add", "product bias", "scores")
    node("Softmax", "scores", "shares", axis=-1)
    node("IsNaN", "shares", "missing")
    node("Where", "missing zero shares", "kept")
    node("MatMul", "kept all_v", "y")
    shapes = {
        "q": ["B", HEADS, "S", SIZE],
        **{x: ["B", SHARED, "S", SIZE] for x in "kv"},
        **{f"past_{x}": ["B", SHARED, "P", SIZE] for x in "kv"},
    }
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, ["B", 1, "S", "P+S"]))
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "present_k", "present_v")]
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "attention", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("sizes", [(1, 1, 0), (1, 1, 9), (2, 5, 3), (3, 17, 2)], ids=str)
def test_it_is_found_and_computes_the_same(sizes):
    batch, length, past = sizes
    rng = np.random.default_rng(sizes)
    given = {name: rng.normal(size=(batch, SHARED, length, SIZE)).astype(np.float32) for name in "kv"}
    given |= {f"past_{name}": rng.normal(size=(batch, SHARED, past, SIZE)).astype(np.float32) for name in "kv"}
    given["q"] = rng.normal(size=(batch, HEADS, length, SIZE)).astype(np.float32)
    seen = np.arange(past + length) <= np.arange(past, past + length)[:, None]
    given["mask"] = np.broadcast_to(seen, (batch, 1, *seen.shape)).copy()
    given["mask"][0, 0, 0] = False  # padding, which sees nothing
    model = exported()
    runnable = tract.onnx().load_bytes(model.SerializeToString()).into_model().into_runnable("cpu")
    assert "by attention on cpu (1 group)" in str(runnable.explain()).splitlines()[0]
    for found, wanted in zip(runnable.run(given), expected(model, given), strict=True):
        np.testing.assert_allclose(found.view(), wanted, rtol=0, atol=1e-5)


def test_the_keys_of_the_past_are_read_where_they_are():
    """No product, no stretch and no other arrangement of them is left in front of the sum."""
    typed = load(exported()).into_typed()
    typed.declutter()
    (first,) = [node for node in typed.nodes if node.op.name == "EinSum" and "present_k" in behind(typed, node)]
    assert behind(typed, first) == ["present_k", "AddAxis", "MultiBroadcastTo", "Reshape"]


def behind(model, node):
    """What is between the past and a product, the first one first: the name of the first, and operators."""
    found, outlet = [], node.inputs[1]
    while model.nodes[outlet.node].op.name != "TypedConcat" and model.nodes[outlet.node].inputs:
        found.insert(0, model.nodes[outlet.node].op.name)
        outlet = model.nodes[outlet.node].inputs[0]
    return [model.outlet_name(outlet), *found]
