"""Models written as ONNX files: names, sizes, constants, files beside, and what is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tract_onnx.writing import saver
from tract_onnx.writing.saver import OnnxWriter

import tract_core as tract
from tract_core.cli.frame import app
from tract_core.errors import InputError, Unwritable

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"


def made(nodes: list[Any], inputs: dict[str, list[Any]], outputs: list[str], **held: np.ndarray) -> tract.Model:
    """A model of nodes of ONNX."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, FLOAT, sizes) for name, sizes in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return tract.load_bytes(model.SerializeToString())


def written(model: tract.Model, **options: Any) -> onnx.ModelProto:
    """The file that is written, which passes ONNX's checks."""
    found = onnx.load_from_string(OnnxWriter(**options).to_bytes(model.typed))
    onnx.checker.check_model(found, full_check=True)
    return found


def kinds(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def run(model: onnx.ModelProto, **inputs: Any) -> list[Any]:
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)  # pyright: ignore[reportReturnType]: tensors


def test_a_trained_network_is_the_same(tmp_path: Path) -> None:
    model = tract.load(DIGITS)
    model.clone().save(tmp_path / "digits.onnx")
    x = np.random.default_rng(0).random((5, 1, 8, 8), np.float32)
    theirs = onnxruntime.InferenceSession(tmp_path / "digits.onnx").run(None, {"image": x})[0]
    ours = np.asarray(model.clone().into_runnable().run([x])[0])
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=2e-6)
    again = np.asarray(tract.load(tmp_path / "digits.onnx").into_runnable().run([x])[0])
    np.testing.assert_allclose(again, ours, rtol=0, atol=2e-6)


def test_inputs_and_outputs_keep_their_names_and_symbols() -> None:
    nodes = [helper.make_node("Relu", ["in put"], ["mid/dle"]), helper.make_node("Neg", ["mid/dle"], ["out:put"])]
    graph = written(made(nodes, {"in put": ["N", 3]}, ["out:put", "mid/dle"])).graph
    assert [one.name for one in graph.input] == ["in put"]
    assert [one.name for one in graph.output] == ["out:put", "mid/dle"]
    sizes = [dim.dim_param or dim.dim_value for dim in graph.input[0].type.tensor_type.shape.dim]
    assert sizes == ["N", 3]


@pytest.mark.parametrize("name", ["serving:0_0", "a batch", "3 of", "N"])
def test_sizes_of_any_name_are_the_same_when_they_are_read_again(name: str) -> None:
    nodes = [helper.make_node("Concat", ["x", "x"], ["y"], axis=0)]
    first = written(made(nodes, {"x": [name]}, ["y"]))
    again = written(tract.load_bytes(first.SerializeToString()))
    assert again.graph.input[0].type.tensor_type.shape.dim[0].dim_param == name
    assert again.graph.output[0] == first.graph.output[0]


def test_an_input_may_be_an_output_and_an_output_may_come_twice() -> None:
    nodes = [helper.make_node("Identity", ["x"], ["a"]), helper.make_node("Identity", ["x"], ["b"])]
    found = run(written(made(nodes, {"x": [2]}, ["a", "b"])), x=np.array([1, 2], np.float32))
    assert [one.tolist() for one in found] == [[1, 2], [1, 2]]


def test_an_output_may_be_a_constant() -> None:
    nodes = [helper.make_node("Identity", ["c"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    model = written(made(nodes, {"x": [1]}, ["y", "z"], c=np.array([3, 4], np.float32)))
    assert [one.tolist() for one in run(model, x=np.ones(1, np.float32))] == [[3, 4], [-1]]


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (5, 4)])
def test_sizes_that_are_symbols_are_computed_in_the_run(sizes: tuple[int, int]) -> None:
    """x [N, S, 4] as [S * N, 4], repeated, cut in the middle, and how many there are."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        helper.make_node("Shape", ["t"], ["s"]),
        helper.make_node("Split", ["s", "ones"], ["a", "b", "c"], axis=0),
        helper.make_node("Mul", ["a", "b"], ["ab"]),
        helper.make_node("Concat", ["ab", "c"], ["form"], axis=0),
        helper.make_node("Reshape", ["t", "form"], ["y"]),
        helper.make_node("Div", ["ab", "two"], ["half"]),
        helper.make_node("Slice", ["y", "half", "ab", "zero"], ["z"]),
        helper.make_node("Cast", ["form"], ["n"], to=FLOAT),
    ]
    numbers = {"ones": [1, 1, 1], "two": [2], "zero": [0]}
    held = {name: np.array(value, np.int64) for name, value in numbers.items()}
    x = np.random.default_rng(0).random((*sizes, 4), np.float32)
    y, z, n = run(written(made(nodes, {"x": ["N", "S", 4]}, ["y", "z", "n"], **held)), x=x)
    wanted = x.transpose(1, 0, 2).reshape(-1, 4)
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(z, wanted[len(wanted) // 2 :])
    assert n.tolist() == [len(wanted), 4]


def test_what_others_have_one_operator_for_is_that_operator() -> None:
    """A convolution with its bias, a point-wise one, bounds on both sides, and a product of matrices."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Clip", ["c", "low", "high"], ["d"]),
        helper.make_node("Conv", ["d", "v", "b2"], ["e"]),
        helper.make_node("Relu", ["e"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    numbers = np.random.default_rng(0)
    held = {"w": (4, 3, 3, 3), "b": (4,), "v": (5, 4, 1, 1), "b2": (5,), "m": (8, 2)}
    arrays = {name: numbers.standard_normal(shape).astype(np.float32) for name, shape in held.items()}
    model = made(nodes, {"x": ["N", 3, 8, 8]}, ["y"], low=np.float32(0), high=np.float32(6), **arrays)
    assert kinds(written(model)) == Counter({"Conv": 2, "Clip": 1, "Relu": 1, "MatMul": 1})


def test_bounds_that_cross_are_written_one_after_the_other() -> None:
    nodes = [helper.make_node("Max", ["x", "two"], ["a"]), helper.make_node("Min", ["a", "one"], ["y"])]
    model = written(made(nodes, {"x": [3]}, ["y"], two=np.float32(2), one=np.float32(1)))
    assert run(model, x=np.array([0, 1.5, 9], np.float32))[0].tolist() == [1, 1, 1]


def test_nothing_below_zero_and_then_a_bound_below_zero() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Min", ["a", "low"], ["y"])]
    model = written(made(nodes, {"x": [3]}, ["y"], low=np.float32(-1)))
    assert kinds(model) == Counter({"Relu": 1, "Clip": 1})
    assert run(model, x=np.array([-2, 0, 9], np.float32))[0].tolist() == [-1, -1, -1]


def test_branches_and_loops_see_what_is_around_them() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "piece"], ["sum"]), helper.make_node("Mul", ["sum", "scale"], ["out"])],
        "body",
        [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("s", "piece")],
        [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("sum", "out")],
    )
    nodes = [helper.make_node("Scan", ["first", "x"], ["last", "all"], body=body, num_scan_inputs=1)]
    model = written(made(nodes, {"first": [2], "x": ["T", 2], "scale": [2]}, ["last", "all"]))
    assert kinds(model) == Counter({"Scan": 1})
    given = {"first": [1, 1], "x": [[1, 2], [3, 4], [5, 6]], "scale": [10, 100]}
    last, whole = run(model, **{name: np.array(value, np.float32) for name, value in given.items()})
    assert last.tolist() == [10, 13]
    assert whole.tolist() == [[20, 300], [50, 700], [100, 1300]]


def test_tensors_may_lie_in_a_file_beside(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((64, 33)).astype(np.float32)
    model = made([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["N", 64]}, ["y"], w=weights)
    model.clone().save(tmp_path / "model.onnx", external_data=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    assert (tmp_path / "model.onnx").stat().st_size < 1000
    x = np.ones((2, 64), np.float32)
    found = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"x": x})[0]
    np.testing.assert_allclose(found, x @ weights, rtol=0, atol=1e-5)
    again = tract.load(tmp_path / "model.onnx").into_runnable().run([x])[0]
    np.testing.assert_allclose(np.asarray(again), x @ weights, rtol=0, atol=1e-5)


@pytest.mark.parametrize("opset", range(17, 26))
def test_versions_of_the_operators(opset: int) -> None:
    nodes = [
        helper.make_node("ReduceMean", ["x", "axes"], ["m"]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Softmax", ["d"], ["y"], axis=-1),
    ]
    model = written(made(nodes, {"x": ["N", 4]}, ["y"], axes=np.array([1])), opset=opset)
    assert model.opset_import[0].version == opset
    x = np.array([[1, 2, 3, 4]], np.float32)
    exact = np.exp(x - 4) / np.exp(x - 4).sum()
    np.testing.assert_allclose(ReferenceEvaluator(model).run(None, {"x": x})[0], exact, rtol=0, atol=1e-6)


@pytest.mark.parametrize("opset", [16, 99, "21", 21.0, True])
def test_versions_that_are_not_written(opset: Any) -> None:
    with pytest.raises(InputError, match=r"opset is .*, wanted a number from 17 to"):
        OnnxWriter(opset=opset)


def test_all_that_cannot_be_said_is_told_at_once(tmp_path: Path) -> None:
    """Operators of version 18, in 17."""
    nodes = [
        helper.make_node("BitwiseNot", ["x"], ["a"], name="first"),
        helper.make_node("BitwiseAnd", ["x", "a"], ["b"], name="second"),
        helper.make_node("BitwiseOr", ["b", "a"], ["y"], name="third"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT32, [3])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    model = tract.load_bytes(proto.SerializeToString())
    with pytest.raises(Unwritable) as caught:
        model.save(tmp_path / "m.onnx", opset=17)
    said = str(caught.value)
    assert "3 nodes cannot be written" in said
    for name in ("BitNot", "BitAnd", "BitOr"):
        assert f"{name} has no words in version 17 of ONNX's operators" in said
    assert [*tmp_path.iterdir()] == []


def test_what_a_model_says_about_itself_comes_along(tmp_path: Path) -> None:
    model = made([helper.make_node("Relu", ["x"], ["y"])], {"x": ["N"]}, ["y"])
    said = {
        "onnx.metadata_props.author": np.array("Zoë", object),
        "onnx.doc_string": np.array("two\nlines", object),
        "onnx.model_version": np.array(7),
        "steps": np.array([[1, 2, 3]], np.int16),
        "rate": np.array(0.5),
        "names": np.array(["a", "b"], object),
        "onnx.producer_name": np.array("somebody", object),
    }
    typed = model.typed
    typed.properties.update(said)
    path = tmp_path / "m.onnx"
    path.write_bytes(OnnxWriter().to_bytes(typed))
    again = tract.load(path).typed.properties
    for name, value in said.items():
        if name != "onnx.producer_name":  # who writes a file says so
            assert again[name].dtype == value.dtype
            np.testing.assert_array_equal(again[name], value)
    assert again["onnx.producer_name"] == "tract"


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '["i8", [2], [1]]', '["nothing", [], [1]]', '["i8", [], ["a"]]', "[" * 9999]
)
def test_pairs_that_only_look_like_properties_stay_pairs(text: str) -> None:
    file = onnx.load_from_string(
        OnnxWriter().to_bytes(made([helper.make_node("Relu", ["x"], ["y"])], {"x": [1]}, ["y"]).typed)
    )
    file.metadata_props.add(key="tract.odd", value=text)
    again = tract.load_bytes(file.SerializeToString()).typed.properties
    assert again["onnx.metadata_props.tract.odd"] == text


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(tract.TractError, match="nowhere"):
        tract.load(DIGITS).save(tmp_path / "nowhere" / "m.onnx")
    done = CliRunner().invoke(app, [str(DIGITS), "save", str(tmp_path / "nowhere" / "m.onnx")])
    assert done.exit_code != 0
    assert "nowhere" in done.output
    assert "Traceback" not in done.output


def test_a_name_that_no_format_has(tmp_path: Path) -> None:
    with pytest.raises(tract.TractError, match=r"\.onnx"):
        tract.load(DIGITS).save(tmp_path / "m.onxn")
    assert [*tmp_path.iterdir()] == []


def test_more_than_one_file_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit of less than 2 GB, as memory is dear."""
    monkeypatch.setattr(saver, "LARGEST", 5000)
    model = tract.load(DIGITS)
    with pytest.raises(Unwritable, match="more than 2 GB, which one file cannot hold"):
        OnnxWriter().to_bytes(model.typed)
    model.clone().save(tmp_path / "m.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    x = np.random.default_rng(0).random((2, 1, 8, 8), np.float32)
    wanted = np.asarray(model.into_runnable().run([x])[0])
    found = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"image": x})[0]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)


def test_what_became_part_of_another_is_gone_from_bodies_too() -> None:
    """A branch with a product and a sum has one node, and holds what it reads alone."""
    branch = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["out"])],
        "then",
        [],
        [helper.make_tensor_value_info("out", FLOAT, [2, 3])],
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["b2"], ["out2"])], "else", [], [helper.make_tensor_value_info("out2", FLOAT, [2, 3])]
    )
    held = {"w": np.ones((4, 3), np.float32), "b": np.ones(3, np.float32), "b2": np.ones((2, 3), np.float32)}
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other)],
        "g",
        [helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("x", FLOAT, [2, 4])],
        [helper.make_tensor_value_info("y", FLOAT, [2, 3])],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    found = written(tract.load_bytes(proto.SerializeToString()))
    (node,) = found.graph.node
    bodies = {one.name: [inner.op_type for inner in one.g.node] for one in node.attribute}
    assert bodies["then_branch"] == ["Gemm"]
    given = {"c": np.array(True), "x": np.ones((2, 4), np.float32)}
    assert run(found, **given)[0].tolist() == [[5, 5, 5]] * 2


def test_the_command_writes_it(tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    done = CliRunner().invoke(app, [str(DIGITS), "save", str(target), "--onnx-opset", "18"])
    assert done.exit_code == 0, done.output
    assert onnx.load(target).opset_import[0].version == 18
