"""Messages name nodes as their file does, which viewers show; tensors keep the names by which they are compared."""

from __future__ import annotations

import subprocess
import sys
import warnings

import onnx
import pytest
from onnx import TensorProto, helper

import tract_core as tract
from tract_core.errors import ModelError, ModelWarning


def model(tmp_path, *nodes, said=(), size=4):
    """A file of these nodes; the input is x: B,size,f32, the output the first of the last node."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", size])
    y = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    graph = helper.make_graph(list(nodes), "graph", [x], [y], value_info=list(said))
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def relu(name="/encoder/act"):
    return helper.make_node("Relu", ["x"], ["/encoder/act_output_0"], name=name)


def conv(data, name):
    """Of data of two axes, which is refused."""
    return helper.make_node("Conv", [data, "x"], ["y"], name=name)


SIGN = helper.make_node("Sign", ["/encoder/act_output_0"], ["y"])
WRONG = helper.make_tensor_value_info("/encoder/act_output_0", TensorProto.FLOAT, ["B", 7])


def test_a_node_that_cannot_be_wired(tmp_path):
    path = model(tmp_path, relu(), conv("/encoder/act_output_0", name="/head/Conv"))
    with pytest.raises(ModelError, match=r"^node '/head/Conv' \(Conv\): ") as caught:
        tract.load(path)
    assert "_output_0'" not in str(caught.value.where)


def test_a_node_without_a_name_is_called_by_what_it_computes(tmp_path):
    with pytest.raises(ModelError, match=r"^node 'y' \(Conv\): "):
        tract.load(model(tmp_path, conv("x", name="")))


def test_what_is_set_aside(tmp_path):
    path = model(tmp_path, relu(), SIGN, said=[WRONG])
    with pytest.warns(ModelWarning, match=r"node '/encoder/act' \(Relu\): the file says B,7,f32") as caught:
        tract.load(path)
    assert caught[0].filename == __file__  # the line of the program, not one of ours


def test_warnings_of_the_command_speak_of_flags(tmp_path):
    path = model(tmp_path, relu(), SIGN, said=[WRONG])
    command = [sys.executable, "-m", "tract_core", str(path), "dump", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert line.startswith("Warning: ")
    assert "node '/encoder/act' (Relu)" in line
    assert "--onnx-strict-facts makes an error of them" in line
    assert "=True" not in line
    assert f"'tract {path} doctor' lists all" in line


def test_a_named_node_that_is_right_is_no_remark(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = tract.load(model(tmp_path, relu()))
    assert loaded.output_names() == ["/encoder/act_output_0"]
