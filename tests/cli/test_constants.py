"""Inputs that the user makes constants: in Python, by --input, and by --constantize with files of arrays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from onnx import TensorProto, helper

import tract_core as tract_
from tract_core.errors import FactError, InputError
from tract_core.model.fact_text import parse_inference_fact

Call = Callable[..., Result]

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def switch(tmp_path: Path) -> Path:
    """An output per branch of a condition on the input ``sr``, under the names ``y`` and ``half``."""

    def branch(name: str, op: str) -> Any:
        nodes = [helper.make_node(op, ["x", "x"], [f"{name}.0"]), helper.make_node("Neg", ["x"], [f"{name}.1"])]
        return helper.make_graph(nodes, name, [], [helper.make_empty_tensor_value_info(f"{name}.{s}") for s in (0, 1)])

    nodes = [
        helper.make_node("Equal", ["sr", "rate"], ["is16"]),
        helper.make_node(
            "If", ["is16"], ["if0", "if1"], then_branch=branch("then", "Add"), else_branch=branch("else", "Mul")
        ),
        helper.make_node("Identity", ["if0"], ["y"]),
        helper.make_node("Identity", ["if1"], ["negative"]),
        helper.make_node("Split", ["if1", "cut"], ["left", "part"], axis=1),
        helper.make_node("Identity", ["part"], ["half"]),
    ]
    graph = helper.make_graph(
        nodes,
        "switch",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 3]),
            helper.make_tensor_value_info("sr", TensorProto.INT64, []),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "negative", "half")],
        [helper.make_tensor("rate", TensorProto.INT64, [], [16000]), helper.make_tensor("cut", 7, [2], [1, 2])],
    )
    path = tmp_path / "switch.onnx"
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(proto.SerializeToString())
    np.savez(tmp_path / "all.npz", x=X, sr=np.array(16000))
    np.savez(tmp_path / "x.npz", x=X)
    np.save(tmp_path / "sr.npy", np.array(8000))
    return path


@pytest.mark.parametrize(("rate", "wanted"), [(16000, X + X), (8000, X * X)])
def test_a_fact_with_a_value_makes_a_constant(switch: Path, rate: int, wanted: Any) -> None:
    model = tract_.onnx().load(switch)
    model.set_input_fact(1, f"i64={rate}")
    model = model.into_model()
    assert model.input_names() == ["x"]
    assert model.output_names() == ["y", "negative", "half"]
    assert "IfThenElse" not in {node.op.name for node in model.typed.live_nodes()}
    y, negative, half = model.into_runnable().run([X])
    np.testing.assert_array_equal(y.to_numpy(), wanted)
    np.testing.assert_array_equal(negative.to_numpy(), -X)
    np.testing.assert_array_equal(half.to_numpy(), -X[:, 1:])


def inputs_of(tract: Call, *arguments: object) -> list[str]:
    content = json.loads(tract(*arguments, "doctor", "--json").output)
    return list(content["inputs"])


def test_flags_make_constants(tract: Call, switch: Path) -> None:
    folder = switch.parent
    assert inputs_of(tract, switch) == ["x", "sr"]
    for flags in (
        ["-i", "sr:i64=16000"],
        ["-i", "sr:i64=16000", "--constantize", "sr"],
        ["--input-facts-from-bundle", folder / "all.npz", "--constantize", "sr"],
        ["-i", f"sr={folder / 'sr.npy'}", "--constantize", "sr"],
    ):
        assert inputs_of(tract, *flags, switch) == ["x"]
        run = tract(*flags, switch, "run", "--input-from-npz", folder / "x.npz", "--save-outputs", folder / "out.npz")
        assert run.exit_code == 0, run.output
        with np.load(folder / "out.npz") as found:
            np.testing.assert_array_equal(found["y"], X * X if "sr=" in str(flags[1]) else X + X)
        (folder / "out.npz").unlink()


def test_what_has_no_value_is_no_constant(tract: Call, switch: Path) -> None:
    for flags in (
        ["--constantize", "sr"],
        ["--input-facts-from-bundle", switch.parent / "x.npz", "--constantize", "sr"],
    ):
        result = tract(*flags, switch)
        assert result.exit_code == 1
        assert "input 'sr' has no known value" in result.output
        assert "NAME=FILE.npy" in result.output
    assert "a node computes it" in tract("--override-fact", "y:2,f32=1,2", switch).output


def test_the_partner_gets_the_constant(tract: Call, switch: Path) -> None:
    pytest.importorskip("onnxruntime")
    bundle = switch.parent / "x.npz"
    for flags in (["-i", "sr:i64=16000"], ["-i", f"sr={switch.parent / 'sr.npy'}", "--constantize", "sr"]):
        result = tract(*flags, switch, "compare", "--with", "onnxruntime", "--input-from-npz", bundle, "--json")
        assert result.exit_code == 0, result.output
        compared = {one["name"] for one in json.loads(result.output)["tensors"] if one["compared"]}
        assert {"y", "negative", "half"} <= compared


def test_values_in_texts() -> None:
    for text, wanted in (
        ("i64=16000", np.array(16000)),
        ("2,3,f32=1,2,3,4,5,6.5", np.array([[1, 2, 3], [4, 5, 6.5]], np.float32)),
        ("2,bool=true,0", np.array([True, False])),
        ("0,i8=", np.zeros(0, np.int8)),
        ("f64=nan", np.array(np.nan)),
        ("2,string=a, b", np.array(["a", "b"], object)),
    ):
        value = parse_inference_fact(text).value
        assert value is not None
        np.testing.assert_array_equal(value.array, wanted)
        assert value.array.dtype == wanted.dtype
    assert parse_inference_fact('i"a=b",f32').value is None
    for text, problem in (
        ("2,i64=1", "'1' is not 2 values for 2,i64"),
        ("i64=1.5", "'1.5' is not 1 values for i64"),
        ("u8=256", "'256' is not 1 values for u8"),
        ("_,i64=1,2", "every size"),
        ("S,i64=1", "symbolic"),
        ("i64=[[1]]", "is not 1 values"),
    ):
        with pytest.raises(FactError, match=problem):
            parse_inference_fact(text)


def test_only_inputs_have_values_of_their_own(switch: Path) -> None:
    model = tract_.onnx().load(switch)
    with pytest.raises(InputError, match="a node computes it, so it has no other value"):
        model.set_output_fact(0, "2,3,f32=1,2,3,4,5,6")
