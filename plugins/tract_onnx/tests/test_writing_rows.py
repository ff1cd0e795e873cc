"""Operators that are written in a way of their own, run by ONNX Runtime or the package ``onnx``."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from test_trees import grid, random_trees, random_votes
from tract_onnx.writing.saver import OnnxWriter

import tract_core as tract
from tract_core.data import Constant
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.deconv import Deconv
from tract_core.ops.fft import Fft, Stft
from tract_core.ops.range import Range
from tract_core.runtime.plan import TypedSimplePlan

RANDOM = np.random.default_rng(0)
"""Only for tests of one op each: none asks for the same numbers twice."""


def model_of(op: Any, *facts: str) -> TypedModel:
    """A model of one operator, with inputs x0, x1 ..."""
    model = TypedModel()
    inputs = [model.add_source(f"x{slot}", tract_fact(model, fact)) for slot, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("y", op, inputs))
    return model


def tract_fact(model: TypedModel, text: str) -> Any:
    return parse_typed_fact(text, model.symbols)


def outputs(model: TypedModel, *arrays: Any, opset: int = 21) -> list[Any]:
    content = OnnxWriter(opset=opset).to_bytes(model)
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = onnxruntime.InferenceSession(content)
    names = [one.name for one in session.get_inputs()]
    return session.run(None, dict(zip(names, map(np.asarray, arrays), strict=True)))  # pyright: ignore[reportReturnType]: tensors


def pairs(*shape: int, kind: str = "f") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal((*shape, 2)).astype(kind)


def as_pairs(values: np.ndarray) -> np.ndarray:
    return np.stack([values.real, values.imag], -1)


@pytest.mark.parametrize("opset", [17, 20, 21])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((2, 5), 1), ((3, 4, 2), 1), ((4, 1, 3), 0), ((1, 1), 1)])
@pytest.mark.parametrize("kind", ["f", "d"])
def test_fourier_transforms(kind: str, shape: tuple[int, ...], axis: int, inverse: bool, opset: int) -> None:
    x = pairs(*shape, kind=kind)
    values = x[..., 0] + 1j * x[..., 1].astype(np.float64)
    exact = np.fft.ifft(values, axis=axis) * shape[axis] if inverse else np.fft.fft(values, axis=axis)
    sizes = ",".join(map(str, x.shape))
    model = model_of(Fft(axis, inverse), f"{sizes},{'f32' if kind == 'f' else 'f64'}")
    np.testing.assert_allclose(outputs(model, x, opset=opset)[0], as_pairs(exact), rtol=0, atol=2e-5)


@pytest.mark.parametrize(("shape", "axis"), [((9,), 0), ((2, 9), 1), ((2, 3, 9), 2), ((9, 2), 0), ((2, 9, 3), 1)])
@pytest.mark.parametrize("window", [None, 4, 3])
def test_transforms_of_frames(shape: tuple[int, ...], axis: int, window: int | None) -> None:
    held = None if window is None else Constant(np.arange(1, window + 1, dtype=np.float32))
    x = pairs(*shape)
    model = model_of(Stft(axis, 4, 3, held), f"{','.join(map(str, x.shape))},f32")
    values = np.moveaxis(x[..., 0] + 1j * x[..., 1].astype(np.float64), axis, -1)
    full = np.ones(4) if window is None else np.pad(np.arange(1, window + 1), ((4 - window) // 2, (5 - window) // 2))
    frames = np.stack([values[..., start : start + 4] * full for start in range(0, shape[axis] - 3, 3)], -2)
    exact = np.moveaxis(np.fft.fft(frames), (-2, -1), (axis, axis + 1))
    np.testing.assert_allclose(outputs(model, x)[0], as_pairs(exact), rtol=0, atol=1e-4)


@pytest.mark.parametrize("length", [6, 7])
def test_half_of_the_frequencies_of_a_real_signal(length: int) -> None:
    """The file says so, and not that all of them are computed and half of them left out."""
    nodes = [helper.make_node("DFT", ["x", "", "axis"], ["y"], onesided=1)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", length, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(1), "axis")],
    )
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    content = OnnxWriter().to_bytes(tract.load_bytes(file.SerializeToString()).typed)
    assert [one.op_type for one in onnx.load_from_string(content).graph.node] == ["DFT"]
    x = RANDOM.standard_normal((3, length, 1)).astype(np.float32)
    (found,) = onnxruntime.InferenceSession(content).run(None, {"x": x})
    np.testing.assert_allclose(found, as_pairs(np.fft.rfft(x[..., 0])), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("numbers"), [(0, 5, 1.5), (2, -1, -0.25), (1, 1, 1), (0, 2048, 3)])
def test_numbers_of_halves(numbers: tuple[float, float, float]) -> None:
    model = model_of(Range(tract_fact(TypedModel(), "N,f32").shape[0]), "f16", "f16", "f16")
    start, end, step = (np.float16(one) for one in numbers)
    exact = (np.arange(np.ceil((numbers[1] - numbers[0]) / numbers[2])) * numbers[2] + numbers[0]).astype(np.float16)
    np.testing.assert_array_equal(outputs(model, start, end, step)[0], exact)


@pytest.mark.parametrize("bias", [False, True])
def test_deconvolutions_that_grow(bias: bool) -> None:
    """Less padding than none: zeros behind what comes out, to which the bias is added."""
    held = {"w": RANDOM.standard_normal((2, 3, 3)).astype(np.float32), "b": np.float32([1, 2, 3])}
    inputs = ["x", "w", "b"] if bias else ["x", "w"]
    nodes = [helper.make_node("ConvTranspose", inputs, ["y"], strides=[2], output_shape=[11])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in held.items()],
    )
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = tract.load_bytes(file.SerializeToString()).typed
    assert any(isinstance(node.op, Deconv) for node in model.live_nodes())
    x = RANDOM.standard_normal((2, 2, 4)).astype(np.float32)
    (wanted,) = model_outputs(model, x)
    np.testing.assert_allclose(outputs(model, x)[0], wanted, rtol=0, atol=1e-5)


def model_outputs(model: TypedModel, *arrays: Any) -> list[Any]:
    """On the reference runtime."""
    return [np.asarray(one) for one in TypedSimplePlan(model).run([*arrays])]


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_trees(aggregate: str, kind: Any) -> None:
    rng = np.random.default_rng(3)
    trees = random_trees(rng)
    votes = random_votes(rng, trees, 3, "target", votes=1)
    told = {**votes, "n_targets": 3, "aggregate_function": aggregate}
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **trees, **told)
    x = grid(rng, dtype=kind)
    code = TensorProto.FLOAT if kind is np.float32 else TensorProto.DOUBLE
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", code, ["N", x.shape[1]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    file = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    content = file.SerializeToString()
    wanted = onnxruntime.InferenceSession(content).run(None, {"x": x})[0]
    model = tract.load_bytes(content).typed
    made = onnx.load_from_string(OnnxWriter().to_bytes(model))
    onnx.checker.check_model(made, full_check=True)
    (found,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


def test_a_branch_that_ends_the_run_ends_it_there_too() -> None:
    """Only the branch that is taken is computed."""
    branches = {
        "then_branch": helper.make_graph(
            [helper.make_node("Neg", ["x"], ["a"])],
            "then",
            [],
            [helper.make_tensor_value_info("a", TensorProto.FLOAT, [2, 3])],
        ),
        "else_branch": helper.make_graph(
            [helper.make_node("MatMul", ["x", "x"], ["b"])],
            "else",
            [],
            [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)],
        ),
    }
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], **branches)],
        "g",
        [
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
    )
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    made = onnx.load_from_string(OnnxWriter().to_bytes(tract.load_bytes(file.SerializeToString()).typed))
    session = onnxruntime.InferenceSession(made.SerializeToString())
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(session.run(None, {"c": np.array(True), "x": x})[0], -x)
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(None, {"c": np.array(False), "x": x})
    with pytest.raises(IndexError):
        ReferenceEvaluator(made).run(None, {"c": np.array(False), "x": x})


def test_what_only_the_last_iteration_says() -> None:
    """A carried value that the body does not read, whose size changes."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["again"]),
            helper.make_node("Add", ["sum", "one"], ["next"]),
            helper.make_node("Unsqueeze", ["i", "zero"], ["size"]),
            helper.make_node("Add", ["size", "ones"], ["more"]),
            helper.make_node("Expand", ["next", "more"], ["wide"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, [1]),
            helper.make_tensor_value_info("unread", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [1]),
            helper.make_tensor_value_info("wide", TensorProto.FLOAT, None),
        ],
    )
    held = {"one": np.ones(1, np.float32), "zero": np.array([0]), "ones": np.array([1]), "true": np.array(True)}
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "true", "x", "x"], ["y", "z"], body=body)],
        "g",
        [
            helper.make_tensor_value_info("n", TensorProto.INT64, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yz"],
        [numpy_helper.from_array(value, name) for name, value in held.items()],
    )
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = tract.load_bytes(file.SerializeToString()).typed
    y, z = outputs(model, np.array(3), np.float32([10]))
    assert (y.tolist(), z.tolist()) == ([13], [13, 13, 13])
