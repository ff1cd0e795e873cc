"""Files give sizes that differ one name: the error says what to write, and what it says works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

import tract_core as tract
from tract_core.cli.frame import app
from tract_core.errors import InputError, ModelWarning

Array = np.ndarray[Any, Any]
Sizes = dict[str, list[int | str]]


def model_of(inputs: Sizes, said: Sizes | None = None) -> bytes:
    """Every input becomes an output of its own."""
    graph = helper.make_graph(
        [helper.make_node("Relu", [name], [f"{name}.relu"]) for name in inputs],
        "names",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name, sizes in inputs.items()],
        [helper.make_empty_tensor_value_info(f"{name}.relu") for name in inputs],
        value_info=[helper.make_tensor_value_info(n, TensorProto.FLOAT, sizes) for n, sizes in (said or {}).items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return proto.SerializeToString()


def zeros(*shapes: tuple[int, ...]) -> list[Array]:
    return [np.zeros(shape, np.float32) for shape in shapes]


CASES: list[tuple[Sizes, list[Array], str]] = [
    ({"a": ["N", 4], "b": ["N", 4]}, zeros((2, 4), (3, 4)), r"input 'b': axis 0 .* N is 2 by input 'a'"),
    ({"a": ["dynamic", 2], "b": [2, "dynamic"]}, zeros((5, 2), (2, 6)), r"input 'b': axis 1 .* by input 'a'"),
    ({"a": ["N"], "b": ["N"], "c": ["N"]}, zeros((1,), (1,), (0,)), r"input 'c': axis 0 .* by input 'a'"),
    ({"a": ["N", "N"]}, zeros((2, 3)), r"input 'a': shape \(2, 3\) does not fit N,N"),
    ({"a": ["N"], "in put": ["N", 3]}, zeros((2,), (4, 3)), r"input 'in put': axis 0"),
    ({"a": ["N", "N2"], "b": ["N"]}, zeros((1, 2), (3,)), r"input 'b': axis 0"),
]


@pytest.mark.parametrize(("inputs", "arrays", "message"), CASES)
def test_the_error_says_what_to_write(inputs: Sizes, arrays: list[Array], message: str, tmp_path: Path) -> None:
    content = model_of(inputs)
    with pytest.raises(InputError, match=message) as caught:
        tract.onnx().load_bytes(content).into_model().into_runnable().run(arrays)
    slot, fact = re.findall(r"set_input_fact\((\d+), '(.*?)'\)", str(caught.value.hint))[0]
    model = tract.onnx().load_bytes(content)
    model.set_input_fact(int(slot), fact)
    found = model.into_model().into_runnable().run(arrays)
    assert [one.shape for one in found] == [one.shape for one in arrays]

    (tmp_path / "m.onnx").write_bytes(content)
    np.savez(tmp_path / "in.npz", **dict(zip(inputs, arrays, strict=True)))
    flag = shlex.split(re.findall(r"or (-i .*) on the command line", str(caught.value.hint))[0])
    run = ["run", "--input-from-npz", str(tmp_path / "in.npz")]
    assert CliRunner().invoke(app, [str(tmp_path / "m.onnx"), *run]).exit_code == 1
    assert CliRunner().invoke(app, [*flag, str(tmp_path / "m.onnx"), *run]).exit_code == 0


@pytest.mark.parametrize(("inputs", "arrays", "message"), CASES)
def test_sizes_of_their_own(inputs: Sizes, arrays: list[Array], message: str) -> None:
    runnable = tract.onnx().load_bytes(model_of(inputs), own_symbols=True).into_model().into_runnable()
    assert [one.shape for one in runnable.run(arrays)] == [one.shape for one in arrays]


def test_what_has_its_name_alone_keeps_it() -> None:
    inputs: Sizes = {"a": ["N", "S"], "b": ["N", "past + new"], "c": ["new"], "d": ["past"]}
    model = tract.onnx().load_bytes(model_of(inputs), own_symbols=True).into_model()
    assert [str(model.input_fact(slot)) for slot in range(4)] == ["a_0,S,f32", "b_0,b_1,f32", "c_0,f32", "d_0,f32"]


def test_names_that_mean_nothing_any_more_fill_in_nothing() -> None:
    """A size that is its own is a name all the same: no number in the file takes its place."""
    content = model_of({"a": ["N", 4], "b": ["N", 4]}, {"a.relu": ["N", 4], "b.relu": [1, 4]})
    with pytest.warns(ModelWarning, match=r"the file says 1,4,f32, its operators give b_0,4,f32"):
        model = tract.onnx().load_bytes(content, own_symbols=True).into_model()
    assert [str(model.output_fact(slot)) for slot in range(2)] == ["a_0,4,f32", "b_0,4,f32"]
