"""What a network computes in float64: the numbers that every engine's results are compared with.

They come from the interpreter in the package `onnx`, which is nobody's engine, on the same network with all of its
f32 made f64.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator


def exact_outputs(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of a network, by name. Takes some seconds for a large one."""
    names = [output.name for output in model.graph.output]
    given = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in inputs.items()}
    return dict(zip(names, ReferenceEvaluator(in_double(model)).run(names, given), strict=True))


def in_double(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a network with f64 wherever it says f32: in weights, in facts, and in what nodes make."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for tensor in wide.graph.initializer:
        tensor.CopyFrom(_widened(tensor))
    for value in (*wide.graph.input, *wide.graph.output, *wide.graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in wide.graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                attribute.t.CopyFrom(_widened(attribute.t))
            elif node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
    return wide


def _widened(tensor: onnx.TensorProto) -> onnx.TensorProto:
    if tensor.data_type != TensorProto.FLOAT:
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)
