"""Quantised models are written so that other engines compute them in integers, and come out the same there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from tract_onnx.writing.saver import OnnxWriter

import tract_core as tract
from tract_core.data import Constant, DatumType
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.ops.quantize import LookupTable, OffsetI8asU8, OffsetU8asI8, Scale

NODE = helper.make_node


def drawn(*shape: int) -> np.ndarray:
    count = int(np.prod(shape[1:])) or 1
    return (np.random.default_rng(list(shape)).standard_normal(shape) / np.sqrt(count)).astype(np.float32)


def network() -> onnx.ModelProto:
    """All that engines know in integers: convolutions, one of a single place, one depthwise, a sum, a mean, Gemm."""
    weights = {
        "w0": drawn(8, 3, 3, 3),
        "b0": drawn(8),
        "w1": drawn(8, 8, 1, 1),
        "b1": drawn(8),
        "w2": drawn(8, 1, 3, 3),
        "b2": drawn(8),
        "v": drawn(12, 8),
        "c": drawn(12),
        "u": drawn(5, 12),
        "d": drawn(5),
    }
    nodes = [
        NODE("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        NODE("Relu", ["c0"], ["r0"]),
        NODE("Conv", ["r0", "w1", "b1"], ["c1"]),
        NODE("Add", ["r0", "c1"], ["sum"]),
        NODE("MaxPool", ["sum"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
        NODE("Conv", ["pooled", "w2", "b2"], ["c2"], pads=[1, 1, 1, 1], group=8),
        NODE("GlobalAveragePool", ["c2"], ["mean"]),
        NODE("Flatten", ["mean"], ["flat"]),
        NODE("Gemm", ["flat", "v", "c"], ["g0"], transB=1),
        NODE("Relu", ["g0"], ["r1"]),
        NODE("Gemm", ["r1", "u", "d"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", 5])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Reader(CalibrationDataReader):
    def __init__(self) -> None:
        self._turns = iter(
            [{"x": np.random.default_rng(seed).standard_normal((4, 3, 8, 8)).astype(np.float32)} for seed in range(3)]
        )

    def get_next(self):
        return next(self._turns, None)


def session(path: Path) -> tuple[onnxruntime.InferenceSession, Counter[str]]:
    """What ONNX Runtime makes of a file, and of which operators that is."""
    options, made = onnxruntime.SessionOptions(), path.with_suffix(".made")
    options.optimized_model_filepath, options.log_severity_level = str(made), 3
    found = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return found, Counter(node.op_type for node in onnx.load(made).graph.node)


@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator], ids=["pairs", "operators"])
def test_what_is_read_and_written_again_is_computed_in_the_same_integers(form: QuantFormat, tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "float.onnx")
    quantize_static(
        tmp_path / "float.onnx",
        tmp_path / "given.onnx",
        Reader(),
        quant_format=form,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    tract.onnx().load(tmp_path / "given.onnx").into_model().save(tmp_path / "written.onnx")
    (given, before), (written, after) = (session(tmp_path / f"{name}.onnx") for name in ("given", "written"))
    integers = {name: count for name, count in before.items() if name.startswith("QLinear")}
    if form is QuantFormat.QDQ:
        assert {name: after[name] for name in (*integers, "QGemm")} == {**integers, "QGemm": 2}
    assert after["Conv"] == 0
    x = np.random.default_rng(9).standard_normal((4, 3, 8, 8)).astype(np.float32)
    wanted = given.run(None, {"x": x})[0]
    np.testing.assert_allclose(written.run(None, {"x": x})[0], wanted, atol=0.02 * np.abs(wanted).max())


def made(op, *facts: TypedFact, known: dict[int, np.ndarray] | None = None) -> TypedModel:
    model = TypedModel()
    inputs = [
        model.add_const(f"k{slot}", known[slot]) if known and slot in known else model.add_source(f"x{slot}", fact)
        for slot, fact in enumerate(facts)
    ]
    model.set_outputs(model.wire_node("y", op, inputs))
    return model


BYTES = np.arange(256, dtype=np.uint8)
TABLE = np.random.default_rng(0).permutation(BYTES)


@pytest.mark.parametrize(
    ("op", "x"),
    [
        (LookupTable(Constant(TABLE)), BYTES),
        (LookupTable(Constant(TABLE.view(np.int8))), BYTES.view(np.int8)),
        (LookupTable(Constant(TABLE.astype(np.float32))), BYTES.view(np.int8)),
        (OffsetI8asU8(), BYTES.view(np.int8)),
        (OffsetU8asI8(), BYTES),
    ],
    ids=["u8", "i8", "floats", "i8 as u8", "u8 as i8"],
)
def test_every_byte_becomes_what_it_must(op, x: np.ndarray) -> None:
    model = made(op, TypedFact.of(DatumType.from_numpy(x.dtype), (256,)))
    (wanted,) = tract.runtime_for_name("reference").prepare(tract.Model.from_typed(model.clone())).run([x])
    content = OnnxWriter().to_bytes(model)
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    (found,) = onnxruntime.InferenceSession(content).run(None, {"x0": x})
    np.testing.assert_array_equal(found, np.asarray(wanted))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32])
def test_integers_times_a_number_are_rounded_and_bounded(kind: type) -> None:
    ends = np.iinfo(kind)
    x = np.array([ends.min, ends.min + 1, 0, 1, 3, 5, ends.max - 1, ends.max], kind)
    factor = np.array([0.5, -0.5, 1.5, 2.5, 1e9, 0, 1, 3], np.float32)
    model = made(Scale(), TypedFact.of(DatumType.F32, (8,)), TypedFact.of(DatumType.from_numpy(x.dtype), (8,)))
    (wanted,) = tract.runtime_for_name("reference").prepare(tract.Model.from_typed(model.clone())).run([factor, x])
    (found,) = onnxruntime.InferenceSession(OnnxWriter().to_bytes(model)).run(None, {"x0": factor, "x1": x})
    np.testing.assert_array_equal(found, np.asarray(wanted))


def in_blocks(nodes: list, rank: int) -> onnx.ModelProto:
    """x W + b, with the transpose of W in blocks of 16 weights of 4 bits."""
    rng = np.random.default_rng(0)
    weights = [
        helper.make_tensor(
            "w", TensorProto.INT4, [24, 64], rng.integers(-8, 8, (24, 64)).astype(ml_dtypes.int4).astype(np.int8)
        ),
        numpy_helper.from_array(rng.uniform(0.01, 0.1, (24, 4)).astype(np.float32), "s"),
        numpy_helper.from_array(drawn(24), "b"),
    ]
    shape = ["B", 64] if rank == 2 else ["B", "S", 64]
    graph = helper.make_graph(
        [
            NODE("DequantizeLinear", ["w", "s"], ["numbers"], axis=1, block_size=16),
            NODE("Transpose", ["numbers"], ["turned"], perm=[1, 0]),
            *nodes,
        ],
        "blocks",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*shape[:-1], 24])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("rank", [2, 3])
def test_weights_in_blocks_stay_in_blocks_elsewhere(rank: int, tmp_path: Path) -> None:
    nodes = [NODE("MatMul", ["x", "turned"], ["product"]), NODE("Add", ["product", "b"], ["y"])]
    onnx.save(in_blocks(nodes, rank), tmp_path / "given.onnx")
    tract.onnx().load(tmp_path / "given.onnx").into_model().save(tmp_path / "written.onnx")
    found, operators = session(tmp_path / "written.onnx")
    assert operators["MatMulNBits"] == 1
    x = np.random.default_rng(1).standard_normal((3, 64) if rank == 2 else (2, 3, 64)).astype(np.float32)
    wanted = onnxruntime.InferenceSession(str(tmp_path / "given.onnx")).run(None, {"x": x})[0]
    np.testing.assert_allclose(found.run(None, {"x": x})[0], wanted, atol=0.02 * np.abs(wanted).max())
    again = tract.onnx().load(tmp_path / "written.onnx").into_model().into_runnable().run([x])[0].to_numpy()
    np.testing.assert_allclose(again, wanted, atol=1e-5)


@pytest.mark.parametrize("steps", [0.5, 1.0])
def test_a_bias_is_integers_where_it_is_in_whole_steps(steps: float, tmp_path: Path) -> None:
    """Of scales 0.5 and 0.25, sums are in steps of 0.125."""
    weights = {
        "q": np.array([[[[3]]], [[[-5]]]], np.int8),
        "ws": np.float32(0.25),
        "wz": np.int8(0),
        "xs": np.float32(0.5),
        "xz": np.uint8(7),
        "b": np.array([1.25, -0.375 * steps], np.float32),
    }
    nodes = [
        NODE("QuantizeLinear", ["x", "xs", "xz"], ["stored"]),
        NODE("DequantizeLinear", ["stored", "xs", "xz"], ["data"]),
        NODE("DequantizeLinear", ["q", "ws", "wz"], ["kernel"]),
        NODE("Conv", ["data", "kernel", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "bias",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 2, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 2, 2])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "a.onnx")
    tract.onnx().load(tmp_path / "a.onnx").into_model().save(tmp_path / "b.onnx")
    model = onnx.load(tmp_path / "b.onnx")
    made_of = {node.output[0]: node for node in model.graph.node}
    held = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    (conv,) = (node for node in model.graph.node if node.op_type in ("Conv", "Einsum", "MatMul"))
    assert conv.op_type == "Conv"
    if steps == 1.0:
        maker = made_of[conv.input[2]]
        assert maker.op_type == "DequantizeLinear"
        np.testing.assert_array_equal(held[maker.input[0]], np.array([10, -3], np.int32))
    else:
        assert conv.input[2] not in made_of
    x = np.array([[[[0, 1], [-2, 9]]]], np.float32)
    wanted, found = (onnxruntime.InferenceSession(str(tmp_path / f"{one}.onnx")).run(None, {"x": x})[0] for one in "ab")
    np.testing.assert_allclose(found, wanted, atol=1e-6)


FUNCTIONS = {
    "Sigmoid": [NODE("Sigmoid", ["numbers"], ["f"])],
    "Tanh": [NODE("Tanh", ["numbers"], ["f"])],
    "LeakyRelu": [NODE("LeakyRelu", ["numbers"], ["f"], alpha=0.2)],
    "HardSwish": [NODE("HardSwish", ["numbers"], ["f"])],
    "Mul": [NODE("Sigmoid", ["numbers"], ["s"]), NODE("Mul", ["numbers", "s"], ["f"])],
    "Mul of what is rounded": [
        NODE("Sigmoid", ["numbers"], ["s"]),
        NODE("QuantizeLinear", ["s", "gs", "gz"], ["gate"]),
        NODE("DequantizeLinear", ["gate", "gs", "gz"], ["open"]),
        NODE("Mul", ["numbers", "open"], ["f"]),
    ],
    "Gather": [NODE("Sin", ["numbers"], ["f"])],
}
"""Functions of bytes, by an operator that is to be in the file: a table where it is none that is looked for."""


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_table_that_is_a_function_is_written_as_that(name: str, kind: type, tmp_path: Path) -> None:
    first, last = ["s0", "z0"], ["s1", "z1"]
    nodes = [
        NODE("QuantizeLinear", ["x", *first], ["stored"]),
        NODE("DequantizeLinear", ["stored", *first], ["numbers"]),
        *FUNCTIONS[name],
        NODE("QuantizeLinear", ["f", *last], ["again"]),
        NODE("DequantizeLinear", ["again", *last], ["y"]),
    ]
    middle = 128 if kind is np.uint8 else 0
    weights = {"s0": np.float32(0.043), "z0": kind(middle), "s1": np.float32(0.031), "z1": kind(middle - 20)}
    if "gs" in (name for node in FUNCTIONS[name] for name in node.input):
        weights |= {"gs": np.float32(1 / 255), "gz": np.uint8(0)}
    ports = [helper.make_tensor_value_info(one, TensorProto.FLOAT, [256]) for one in "xy"]
    held = [numpy_helper.from_array(np.asarray(array), one) for one, array in weights.items()]
    graph = helper.make_graph(nodes, "function", ports[:1], ports[1:], held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "a.onnx")
    tract.onnx().load(tmp_path / "a.onnx").into_model().save(tmp_path / "b.onnx")
    made_of = [node.op_type for node in onnx.load(tmp_path / "b.onnx").graph.node]
    assert name.split(maxsplit=1)[0] in made_of
    assert ("Gather" in made_of) == (name == "Gather")
    assert made_of.count("QuantizeLinear") == (3 if "rounded" in name else 1 if name == "Gather" else 2)
    x = ((np.arange(256) - 128) * 0.043).astype(np.float32)
    runs = [onnxruntime.InferenceSession(str(tmp_path / f"{one}.onnx")).run(None, {"x": x})[0] for one in "ab"]
    np.testing.assert_allclose(runs[1], runs[0], atol=0.0311 if name == "Gather" else 0)
    ours = [tract.onnx().load(tmp_path / f"{one}.onnx").into_model().into_runnable().run([x])[0] for one in "ab"]
    np.testing.assert_array_equal(np.asarray(ours[1]), np.asarray(ours[0]))


@pytest.mark.parametrize("opset", [17, 21])
@pytest.mark.parametrize("places", [3, 1])
def test_what_is_quantised_dynamically_stays_so(tmp_path: Path, opset: int, places: int) -> None:
    weights = {
        "w0": np.random.default_rng(0).integers(-127, 128, (6, 4, places, places), np.int8),
        "w1": np.random.default_rng(1).integers(-127, 128, (6, 5), np.int8),
    }
    nodes = [
        NODE("DynamicQuantizeLinear", ["x"], ["q0", "s0", "z0"]),
        NODE("ConvInteger", ["q0", "w0", "z0"], ["i0"], pads=[places // 2] * 4),
        NODE("Cast", ["i0"], ["f0"], to=TensorProto.FLOAT),
        NODE("Mul", ["f0", "s0"], ["c0"]),
        NODE("GlobalAveragePool", ["c0"], ["mean"]),
        NODE("Flatten", ["mean"], ["flat"]),
        NODE("DynamicQuantizeLinear", ["flat"], ["q1", "s1", "z1"]),
        NODE("MatMulInteger", ["q1", "w1", "z1"], ["i1"]),
        NODE("Cast", ["i1"], ["f1"], to=TensorProto.FLOAT),
        NODE("Mul", ["f1", "s1"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "dynamic",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 4, 5, 7])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", 5])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "x.onnx")
    tract.load(tmp_path / "x.onnx").save(tmp_path / "y.onnx", opset=opset)
    written = onnx.load(tmp_path / "y.onnx")
    onnx.checker.check_model(written, full_check=True)
    counts = Counter(node.op_type for node in written.graph.node)
    assert counts["DynamicQuantizeLinear"] == 2
    assert counts["ConvInteger"] == counts["MatMulInteger"] == 1
    assert sum(counts.values()) <= len(nodes), counts
    x = np.random.default_rng(2).standard_normal((3, 4, 5, 7), np.float32)
    found, wanted = (
        onnxruntime.InferenceSession(tmp_path / name).run(None, {"x": x})[0] for name in ("y.onnx", "x.onnx")
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4 * np.abs(wanted).max())


def test_bytes_with_a_sign_are_no_dynamic_quantisation(tmp_path: Path) -> None:
    """DynamicQuantizeLinear makes bytes without a sign: the same steps from a zero point of i8 stay as they are."""
    constants = {"zero": np.float32(0), "one": np.float32(1), "steps": np.float32(255), "point": np.int8(0)}
    nodes = [
        NODE("ReduceMax", ["x"], ["max"], keepdims=0),
        NODE("Max", ["max", "zero"], ["high"]),
        NODE("ReduceMin", ["x"], ["min"], keepdims=0),
        NODE("Min", ["min", "zero"], ["low"]),
        NODE("Sub", ["high", "low"], ["span"]),
        NODE("Div", ["span", "steps"], ["raw"]),
        NODE("Equal", ["span", "zero"], ["flat"]),
        NODE("Where", ["flat", "one", "raw"], ["scale"]),
        NODE("Neg", ["low"], ["below"]),
        NODE("QuantizeLinear", ["below", "scale", "point"], ["at"]),
        NODE("QuantizeLinear", ["x", "scale", "at"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "signed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 8])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, ["B", 8])],
        [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "x.onnx")
    tract.load(tmp_path / "x.onnx").save(tmp_path / "y.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "y.onnx"), full_check=True)
    x = np.random.default_rng(3).standard_normal((2, 8), np.float32)
    found, wanted = (
        onnxruntime.InferenceSession(tmp_path / name).run(None, {"x": x})[0] for name in ("y.onnx", "x.onnx")
    )
    np.testing.assert_array_equal(found, wanted)
