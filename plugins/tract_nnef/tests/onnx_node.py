"""One ONNX node, computed by ONNX Runtime: an independent source of what operators mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

Array = np.ndarray[Any, Any]


def onnx_node(op_type: str, inputs: Sequence[Array], *, opset: int = 18, **attributes: Any) -> Array:
    """The first output of a node of that type."""
    return onnx_run(onnx_model(op_type, inputs, opset=opset, **attributes), inputs)


def onnx_model(
    op_type: str, inputs: Sequence[Array], *, constants: Sequence[Array] = (), opset: int = 18, **attributes: Any
) -> onnx.ModelProto:
    """A model of one node, whose first inputs are given, and whose others are constants."""
    helper = onnx.helper
    held = [onnx.numpy_helper.from_array(one, f"c{place}") for place, one in enumerate(constants)]
    given = [
        helper.make_tensor_value_info(f"x{place}", helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for place, one in enumerate(inputs)
    ]
    names = [one.name for one in (*given, *held)]
    node = helper.make_node(op_type, names, ["y"], name="node", **attributes)
    graph = helper.make_graph([node], "one", given, [onnx.ValueInfoProto(name="y")], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model)


def onnx_run(model: onnx.ModelProto, inputs: Sequence[Array]) -> Array:
    """The first output of a model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return np.asarray(session.run(None, dict(zip(names, inputs, strict=True)))[0])
