"""Run a model here and in ONNX Runtime, and compare."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from tract_onnx.frontend import OnnxLoader

from tract_core.runtime.plan import TypedSimplePlan

RELATIVE = 1e-4
"""Allowed difference, relative to the largest element of the expected output."""


def load(model):
    return OnnxLoader().load_bytes(model.SerializeToString())


def run(model, inputs, *, declutter=True):
    """The outputs of a model, its inputs given by name."""
    typed = load(model).into_typed()
    if declutter:
        typed.declutter()
    plan = TypedSimplePlan(typed)
    return plan.run([inputs[name] for name in plan.input_names])


def expected(model, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # The textbook computation: fused kernels may round differently.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, inputs)


def assert_close(found, wanted, relative=RELATIVE):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        if other.dtype.kind != "f":
            np.testing.assert_array_equal(one, other)
            continue
        np.testing.assert_array_equal(np.isfinite(one), np.isfinite(other))
        scale = np.abs(other[np.isfinite(other)]).max(initial=1e-6)
        np.testing.assert_allclose(one, other, rtol=0, atol=relative * scale)


def check(model, inputs, *, relative=RELATIVE):
    """The model gives what ONNX Runtime gives, as wired and decluttered."""
    wanted = expected(model, inputs)
    for declutter in (False, True):
        assert_close(run(model, inputs, declutter=declutter), wanted, relative)


def kind_of(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def single(op_type, inputs, *, opset=17, fixed=(), outputs=1, symbolic=False, domain="", **attributes):
    """A model of one node. ``inputs``: arrays, ``None`` for one left out; ``fixed``: which of them are constants.

    With ``symbolic``, every size of the other inputs is a symbol, but for lists, which mostly are parameters.
    """
    names = ["" if array is None else f"x{slot}" for slot, array in enumerate(inputs)]
    given = {f"x{slot}": np.asarray(array) for slot, array in enumerate(inputs) if array is not None}
    constants = {f"x{slot}" for slot in fixed}
    node = helper.make_node(
        op_type, names, [f"y{slot}" for slot in range(outputs)], name="the_node", domain=domain, **attributes
    )
    graph = helper.make_graph(
        [node],
        "single",
        [
            helper.make_tensor_value_info(name, kind_of(array), sizes(name, array, symbolic))
            for name, array in given.items()
            if name not in constants
        ],
        [helper.make_value_info(f"y{slot}", onnx.TypeProto()) for slot in range(outputs)],
        [numpy_helper.from_array(array, name) for name, array in given.items() if name in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    if domain:
        model.opset_import.append(helper.make_opsetid(domain, 1))
    return model, {name: array for name, array in given.items() if name not in constants}


def sizes(name, array, symbolic):
    return [f"{name}_{axis}" if symbolic and array.ndim > 1 else size for axis, size in enumerate(array.shape)]


def with_output_types(model):
    """The same model, its outputs declared as ONNX's own inference finds them, as ONNX Runtime wants it."""
    inferred = onnx.shape_inference.infer_shapes(model)
    for info in inferred.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    return inferred
