from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import Result
from onnx import TensorProto, helper, numpy_helper

Call = Callable[..., Result]
node, value = helper.make_node, helper.make_tensor_value_info


def save(path: Path, nodes, inputs, outputs, *, constants=(), said=(), opset=17) -> Path:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(constants), value_info=list(said))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.acme", 3)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    return path


def outside(name: str, location: str) -> TensorProto:
    """A constant of 3 times 5 numbers in another file."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[3, 5], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


@pytest.fixture
def sick(tmp_path: Path) -> Path:
    """Two unknown operators, one of them twice, an annotation that is wrong, and a constant outside the folder."""
    nodes = [
        node("MatMul", ["x", "w"], ["product"]),
        node("Relu", ["product"], ["wrong"]),
        node("Frobnicate", ["wrong"], ["one"], domain="com.acme"),
        node("Frobnicate", ["one"], ["two"], domain="com.acme"),
        node("Wobble", ["two"], ["three"]),
        node("MatMul", ["wrong", "far"], ["y"]),
        node("Add", ["three", "three"], ["z"]),
    ]
    return save(
        tmp_path / "sick.onnx",
        nodes,
        [value("x", TensorProto.FLOAT, ["B", 4])],
        [value("y", TensorProto.FLOAT, ["B", 5]), value("z", TensorProto.FLOAT, None)],
        constants=[numpy_helper.from_array(np.ones((4, 3), np.float32), "w"), outside("far", "../secret.bin")],
        said=[value("wrong", TensorProto.FLOAT, ["B", 7])],
    )


def report(tract: Call, *arguments: object) -> dict:
    return json.loads(tract(*arguments, "doctor", "--json").output)


def problems(content: dict, severity: str = "problem") -> dict[str, dict]:
    return {one["problem"]: one for one in content["findings"] if one["severity"] == severity}


def test_one_report_of_everything(tract: Call, sick: Path) -> None:
    result = tract(sick, "doctor")
    assert result.exit_code == 1
    content = report(tract, sick)
    assert (content["loads"], content["runs"]) == (False, False)
    found = problems(content)
    assert [one["kind"] for one in found.values()] == ["path", "operator", "operator"]
    path, frobnicate, wobble = found.values()
    assert path["places"] == ["tensor 'far'"]
    assert "'../secret.bin'" in path["problem"]
    assert "'Frobnicate' of com.acme, version 3, is not known" in frobnicate["problem"]
    assert frobnicate["places"] == ["node 'one' (Frobnicate)", "node 'two' (Frobnicate)"]
    assert "'Wobble' of ai.onnx, version 17" in wobble["problem"]
    assert all(one["hint"] for one in found.values())
    for one in found.values():
        assert one["problem"].split(":")[0] in result.output


def test_what_is_set_aside_and_what_was_not_looked_at_is_told(tract: Call, sick: Path) -> None:
    contradiction, unseen = problems(report(tract, sick), "remark").values()
    assert unseen["places"] == ["node 'z' (Add)"]
    assert (contradiction["kind"], contradiction["places"]) == ("contradiction", ["node 'wrong' (Relu)"])
    assert "the file says B,7,f32, its operators give B,3,f32" in contradiction["problem"]
    assert contradiction["hint"].endswith("load it with --onnx-ignore-value-info")
    strict = problems(report(tract, "--onnx-strict-facts", sick))
    assert "contradiction" in [one["kind"] for one in strict.values()]


def test_a_healthy_model(tract: Call, model: Path) -> None:
    result = tract(model, "doctor")
    assert result.exit_code == 0
    assert "loads, and would run on 'cpu'" in result.output
    assert "ai.onnx 17" in result.output
    content = report(tract, model)
    assert content["runs"]
    assert content["findings"] == []
    assert content["symbols"] == {"B": "input 'x', axis 0"}
    assert content["operators"] == {"MatMul": 1, "Identity": 1, "Add": 1, "Relu": 1}
    assert content["constants"] == {"count": 2, "bytes": 4 * 3 * 4 + 4}
    assert content["outputs"] == {"y": "B,3,f32"}


def test_a_fact_that_is_missing_and_the_flag_that_gives_it(tract: Call, tmp_path: Path) -> None:
    unknown = value("x", TensorProto.FLOAT, None)
    path = save(tmp_path / "m.onnx", [node("Softmax", ["x"], ["y"])], [unknown], [value("y", TensorProto.FLOAT, None)])
    (finding,) = problems(report(tract, path)).values()
    assert finding["kind"] == "unknown"
    assert "-i x:1,3,224,224,f32" in finding["hint"]
    assert tract(path, "-i", "x:S,4,f32", "doctor").exit_code == 0


def test_a_size_without_a_name_is_a_remark(tract: Call, tmp_path: Path) -> None:
    inputs, outputs = [value("x", TensorProto.FLOAT, [None, 2])], [value("y", TensorProto.FLOAT, None)]
    path = save(tmp_path / "m.onnx", [node("Relu", ["x"], ["y"])], inputs, outputs)
    content = report(tract, path)
    assert content["runs"]
    assert "-i x:B,2,f32" in content["findings"][0]["hint"]


def test_sizes_without_names_are_given_a_name_each(tract: Call, tmp_path: Path) -> None:
    """Pasting what is suggested for one input, or for all of them, asks for no sizes that are equal."""
    inputs = [value("x", TensorProto.FLOAT, [None, None, None]), value("z", TensorProto.FLOAT, [None, "S"])]
    nodes = [node("Relu", ["x"], ["y"]), node("Relu", ["z"], ["w"])]
    outputs = [value("y", TensorProto.FLOAT, None), value("w", TensorProto.FLOAT, None)]
    path = save(tmp_path / "m.onnx", nodes, inputs, outputs)
    hints = [finding["hint"] for finding in report(tract, path)["findings"]]
    flags = [word for hint in hints for word in re.findall(r"-i (\S+)", hint)]
    assert flags == ["x:B,S2,S3,f32", "z:B2,S,f32"]
    content = report(tract, path, *(word for flag in flags for word in ("-i", flag)))
    assert content["findings"] == []
    assert set(content["symbols"]) == {"B", "S2", "S3", "B2", "S"}


def test_operators_inside_a_branch(tract: Call, tmp_path: Path) -> None:
    branches = {
        f"{name}_branch": helper.make_graph([node(op, ["x"], [name])], name, [], [value(name, TensorProto.FLOAT, None)])
        for name, op in (("then", "Foo"), ("else", "Bar"))
    }
    path = save(
        tmp_path / "m.onnx",
        [node("If", ["c"], ["y"], **branches)],
        [value("x", TensorProto.FLOAT, ["B", 2]), value("c", TensorProto.BOOL, [])],
        [value("y", TensorProto.FLOAT, None)],
    )
    found = problems(report(tract, path)).values()
    assert {one["kind"] for one in found} == {"operator"}
    assert "node 'y' (If): node 'then' (Foo)" in [place for one in found for place in one["places"]]


def test_attributes(tract: Call, tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["r"], alpha=1.0), node("Resize", ["r", "", "s"], ["y"], mode="lanczos")]
    path = save(
        tmp_path / "m.onnx",
        nodes,
        [value("x", TensorProto.FLOAT, [1, 1, 2, 2])],
        [value("y", TensorProto.FLOAT, None)],
        constants=[numpy_helper.from_array(np.ones(4, np.float32), "s")],
    )
    content = report(tract, path)
    (problem,) = problems(content).values()
    assert problem["kind"] == "unsupported"
    assert "'mode' of Resize is 'lanczos'" in problem["problem"]
    remarks = [one for one in content["findings"] if one["severity"] == "remark"]
    assert remarks[0]["problem"] == "alpha is no attribute of Relu and is ignored"


def test_attributes_in_functions_and_of_calls(tract: Call, tmp_path: Path) -> None:
    """A function has its own version of the operator set, and its attributes are those that it declares."""
    path = tmp_path / "m.onnx"
    inner = [node("Squeeze", ["x"], ["s"], axes=[0]), node("Relu", ["s"], ["y"], alpha=1.0)]
    old = [helper.make_opsetid("", 11)]
    function = helper.make_function("local", "F", ["x"], ["y"], inner, old, attributes=["known"])
    call = node("F", ["x"], ["y"], domain="local", known=1, unknown=2)
    graph = helper.make_graph(
        [call], "g", [value("x", TensorProto.FLOAT, [1, 2])], [value("y", TensorProto.FLOAT, None)]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=8), path)
    assert {text: one["places"] for text, one in problems(report(tract, path), "remark").items()} == {
        "unknown is no attribute of F and is ignored": ["node 'y' (F)"],
        "alpha is no attribute of Relu and is ignored": ["function local.F: node 'y' (Relu)"],
    }


@pytest.mark.parametrize(("version", "remarked"), [(3, False), (4, True), (10, True)])
def test_an_input_with_a_default_value(tract: Call, tmp_path: Path, version: int, remarked: bool) -> None:
    """Up to version 3 of the format every initialiser is among the inputs."""
    inputs = [value("x", TensorProto.FLOAT, ["B", 2]), value("scale", TensorProto.FLOAT, [2])]
    path = tmp_path / "m.onnx"
    scale = numpy_helper.from_array(np.ones(2, np.float32), "scale")
    graph = helper.make_graph(
        [node("Mul", ["x", "scale"], ["y"])], "g", inputs, [value("y", TensorProto.FLOAT, ["B", 2])], [scale]
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=version), path)
    found = report(tract, path)
    assert found["runs"]
    assert list(found["inputs"]) == ["x"]
    assert [one["places"] for one in found["findings"]] == ([["input 'scale'"]] if remarked else [])
    if remarked:
        assert "--input-node" in found["findings"][0]["hint"]
        assert "error" not in tract(path, "doctor").output
    found = report(tract, "--input-node", "scale", "--input-node", "x", path)
    assert found["inputs"] == {"scale": "2,f32", "x": "B,2,f32"}


def test_a_symbol_that_comes_from_the_data(tract: Call, tmp_path: Path) -> None:
    inputs, outputs = [value("x", TensorProto.FLOAT, ["B", 2])], [value("y", TensorProto.INT64, None)]
    path = save(tmp_path / "m.onnx", [node("NonZero", ["x"], ["y"])], inputs, outputs)
    origins = report(tract, path)["symbols"]
    assert origins.pop("B") == "input 'x', axis 0"
    assert list(origins.values()) == ["what node 'y' (NonZero) computes"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff" * 50, "no ONNX model"),
        (b"", "the file is empty"),
        (b"hello, this is text", "wanted a binary ONNX file, found a text that begins with 'hello, this is text'"),
    ],
)
def test_a_file_that_is_no_model(tract: Call, tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    result = tract(path, "doctor")
    assert result.exit_code == 1
    assert problem in result.output


def test_versions_and_graphs_that_cannot_be(tract: Call, tmp_path: Path) -> None:
    x, y = [value("x", TensorProto.FLOAT, [2])], [value("y", TensorProto.FLOAT, [2])]
    newer = save(tmp_path / "newer.onnx", [node("Relu", ["x"], ["y"])], x, y, opset=999)
    assert [one["kind"] for one in report(tract, newer)["findings"]] == ["version"]
    circle = [node("Add", ["x", "y"], ["a"]), node("Relu", ["a"], ["y"])]
    assert "in a circle" in tract(save(tmp_path / "circle.onnx", circle, x, y), "doctor").output


@pytest.mark.filterwarnings("ignore::tract_core.errors.ModelWarning")
def test_a_contradiction_is_refused_or_ignored_when_that_is_asked_for(tract: Call, tmp_path: Path) -> None:
    x, wrong = [value("x", TensorProto.FLOAT, ["B", 2])], [value("y", TensorProto.FLOAT, ["B", 3])]
    path = save(tmp_path / "m.onnx", [node("Relu", ["x"], ["y"])], x, wrong)
    assert tract(path).exit_code == 0
    assert tract(path, "doctor").exit_code == 0
    assert "the file says B,3,f32, its operators give B,2,f32" in tract(path, "doctor").output
    refused = tract(path, "--onnx-strict-facts")
    assert refused.exit_code == 1
    assert "the file says B,3,f32, its operators give B,2,f32" in refused.output
    assert "load it with --onnx-ignore-output-shapes" in refused.output
    assert "load it with --onnx-ignore-output-shapes" in tract(path, "doctor", "--json").output
    assert f"tract {path} --onnx-strict-facts doctor" in refused.output
    assert tract(path, "--onnx-strict-facts", "--onnx-ignore-output-shapes").exit_code == 0
    assert tract(path, "--onnx-strict-facts", "--onnx-ignore-value-info").exit_code == 1
    whole = [value("y", TensorProto.INT64, ["B", 2])]
    typed = save(tmp_path / "t.onnx", [node("Relu", ["x"], ["y"])], x, whole)
    assert "load it with --onnx-ignore-output-types" in tract(typed, "--onnx-strict-facts").output
    assert tract(typed).exit_code == 0
    assert tract(typed, "--onnx-strict-facts", "--onnx-ignore-output-types").exit_code == 0


def test_other_flags_and_the_runtime(tract: Call, model: Path) -> None:
    assert tract(model, "-t", "nonsense", "doctor").exit_code == 1
    assert tract(model, "-r", "nonsense", "doctor").exit_code == 1
    assert tract(model, "--set", "B=4", "doctor").exit_code == 0
    assert "there is no such file" in tract(model.with_name("absent.onnx"), "doctor").output


def test_a_constant_beyond_the_limits_and_the_rest(tract: Call, tmp_path: Path) -> None:
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(1, np.float32), "huge"),
        numpy_helper.from_array(np.zeros(1, np.int64), "places"),
        [1 << 20, 1 << 12],
    )
    graph = helper.make_graph(
        [node("MatMul", ["x", "huge"], ["p"]), node("Wobble", ["p"], ["y"])],
        "graph",
        [value("x", TensorProto.FLOAT, ["B", 1 << 20])],
        [value("y", TensorProto.FLOAT, None)],
    )
    graph.sparse_initializer.append(sparse)
    path = tmp_path / "m.onnx"
    opsets = [helper.make_opsetid("", 17)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    found = list(problems(report(tract, path)).values())
    assert [one["kind"] for one in found] == ["limit", "operator"]
    assert found[0]["places"] == ["sparse tensor 'huge'"]


def test_a_format_that_examines_nothing(tract: Call, model: Path, sick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("tract_onnx.frontend.OnnxLoader.examine")
    assert tract(model, "doctor").exit_code == 0
    (only,) = problems(report(tract, sick)).values()
    assert only["kind"] == "path"
