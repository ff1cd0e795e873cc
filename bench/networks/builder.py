"""Builds ONNX models node by node, as exporters write them, with random weights that are the same each time."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 17


@dataclass(frozen=True)
class Network:
    """A model with arrays to run it on, by name of input."""

    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]


class Builder:
    """A graph that grows: what adds a node returns the name of its output, or the names."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: dict[str, np.ndarray] = {}

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """A node of the operator ``kind``; a list of names if it has several outputs."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        names = [name, *(f"{name}_{slot}" for slot in range(1, outputs))]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=name, **attributes))
        return name if outputs == 1 else names

    def input(self, name: str, array: np.ndarray) -> str:
        """An input of the model, with the type and the shape of ``array``, on which the model is run."""
        self.inputs[name] = array
        return name

    def normal(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape, np.float32)

    def constant(self, array: Any) -> str:
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def float(self, value: float) -> str:
        return self.constant(np.float32(value))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def weight(self, *shape: int, summed: int, gain: float = 1.0) -> str:
        """Weights under which a sum of ``summed`` products is about ``gain`` times as large as what is multiplied."""
        return self.constant(self.normal(*shape) * np.float32(gain / sqrt(summed)))

    def bias(self, size: int) -> str:
        return self.constant(self.normal(size) * np.float32(0.1))

    def conv(self, x: str, channels: tuple[int, int], kernel: tuple[int, ...] | int, **attributes: Any) -> str:
        """A convolution with a bias, which keeps the size unless ``pads`` or ``strides`` say otherwise.

        ``channels``: inputs and outputs. An integer as ``kernel`` stands for a square.
        """
        sizes = (kernel, kernel) if isinstance(kernel, int) else kernel
        inputs = channels[0] // attributes.get("group", 1)
        attributes.setdefault("pads", [size // 2 for size in sizes] * 2)
        summed = inputs * prod(sizes)
        weights = self.weight(channels[1], inputs, *sizes, summed=summed, gain=1.3)
        return self.add("Conv", x, weights, self.bias(channels[1]), kernel_shape=sizes, **attributes)

    def dense(self, x: str, inputs: int, outputs: int, *, bias: bool = True) -> str:
        """A product of the last axis with a matrix, for any number of axes."""
        y = self.add("MatMul", x, self.weight(inputs, outputs, summed=inputs))
        return self.add("Add", y, self.bias(outputs)) if bias else y

    def gemm(self, x: str, inputs: int, outputs: int) -> str:
        """A fully connected layer on rows."""
        return self.add("Gemm", x, self.weight(outputs, inputs, summed=inputs), self.bias(outputs), transB=1)

    def finish(self, *outputs: str) -> Network:
        given = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in self.inputs.items()
        ]
        results = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "network", given, results, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        return Network(onnx.shape_inference.infer_shapes(model), self.inputs)
