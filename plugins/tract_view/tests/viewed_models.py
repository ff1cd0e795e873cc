"""Models to look at, made in code: layers with names of exporters, long chains, hostile names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tract_core.model import TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.binary import Add
from tract_core.ops.elementwise import Tanh

LAYER = ("MatMul", "Relu", "Mul", "Add", "Sigmoid", "MatMul", "Tanh", "Mul", "Relu", "Add")
"""The operators of a layer: those with two inputs read a weight, the node two before, or what comes into the layer."""

Naming = Callable[[int, int, str], str]


def named(layer: int, at: int, op: str) -> str:
    """As ONNX's exporter of PyTorch calls a node."""
    return f"/model/layers.{layer}/{'attn' if at < 5 else 'mlp'}/{op}_{at}"


def flat(layer: int, at: int, op: str) -> str:
    """A name that says nothing of where a node is."""
    return f"{op.lower()}_{layer * len(LAYER) + at}"


def layers(count: int, naming: Naming, weight: str = "w_{}_{}", width: int = 4) -> onnx.ModelProto:
    """So many layers, one after the other: ``x: N,width,f32`` comes in, and the last node is the output."""
    random = np.random.default_rng(0)
    nodes: list[Any] = []
    weights: list[Any] = []
    current = before = "x"
    for layer in range(count):
        entering = current
        for at, op in enumerate(LAYER):
            inputs = [current]
            if op == "MatMul":
                inputs.append(weight.format(layer, at))
                values = random.standard_normal((width, width)).astype(np.float32) / width
                weights.append(numpy_helper.from_array(values, inputs[1]))
            if op in ("Mul", "Add"):
                inputs.append(before if op == "Mul" else entering)
            name = naming(layer, at, op)
            nodes.append(helper.make_node(op, inputs, [name], name=name))
            before, current = current, name
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", width]) for name in ("x", current)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def saved(folder: Path, proto: onnx.ModelProto, name: str = "model.onnx") -> Path:
    path = folder / name
    onnx.save(proto, path)
    return path


def chain(*names: str) -> TypedModel:
    """``x: 2,3,f32`` through a node of each name, and a sum of all that with a constant."""
    model = TypedModel()
    at = model.add_source("x", parse_typed_fact("2,3,f32", model.symbols))
    for name in names:
        (at,) = model.wire_node(name, Tanh(), [at])
    weight = model.add_const("weight", np.arange(6, dtype=np.float32).reshape(2, 3))
    model.set_outputs(model.wire_node("sum", Add(), [at, weight]))
    return model
