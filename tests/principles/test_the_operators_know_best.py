"""What a file says of its tensors never changes a number: at worst a run is refused, and the error names the place."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import tract_core as tract
from tract_core.errors import InputError, ModelWarning, RunError, TractError

Draw = Callable[[st.SearchStrategy[Any]], Any]
Array = np.ndarray[Any, Any]

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
SIZES = (0, 1, 2, 3, 5)
WRONG_SIZES = [0, 1, 2, 3, 5, 7, 10, "N", "S", "unk__1", None]


def _once(op: str, **attributes: Any) -> Callable[[str, str], list[onnx.NodeProto]]:
    return lambda x, y: [helper.make_node(op, [x], [y], **attributes)]


def _as_floats(op: str) -> Callable[[str, str], list[onnx.NodeProto]]:
    def nodes(x: str, y: str) -> list[onnx.NodeProto]:
        return [helper.make_node(op, [x], [f"{y}.i"]), helper.make_node("Cast", [f"{y}.i"], [y], to=FLOAT)]

    return nodes


def _in_a_branch(x: str, y: str) -> list[onnx.NodeProto]:
    """A graph inside a node, that has things to say of its own tensors."""
    inner = helper.make_graph(
        [helper.make_node("Abs", [x], [f"{y}.abs"]), helper.make_node("Relu", [f"{y}.abs"], [f"{y}.then"])],
        "then",
        [],
        [helper.make_empty_tensor_value_info(f"{y}.then")],
    )
    other = helper.make_graph(
        [helper.make_node("Neg", [x], [f"{y}.else"])], "else", [], [helper.make_empty_tensor_value_info(f"{y}.else")]
    )
    return [
        helper.make_node("ReduceSum", [x], [f"{y}.sum"], keepdims=0),
        helper.make_node("Cast", [f"{y}.sum"], [f"{y}.bool"], to=TensorProto.BOOL),
        helper.make_node("If", [f"{y}.bool"], [y], then_branch=inner, else_branch=other),
    ]


STEPS = [
    _once("Relu"),
    _once("Neg"),
    _once("Transpose"),
    _once("Softmax", axis=0),
    lambda x, y: [helper.make_node("Concat", [x, x], [y], axis=0)],
    lambda x, y: [helper.make_node("Unsqueeze", [x, "zero"], [y])],
    lambda x, y: [helper.make_node("ReduceMean", [x], [y], axes=[0], keepdims=1)],
    lambda x, y: [helper.make_node("ReduceSum", [x, "zero"], [y], keepdims=1)],
    _as_floats("NonZero"),
    _as_floats("Shape"),
    _in_a_branch,
]


@st.composite
def models(draw: Draw) -> onnx.ModelProto:
    """A chain of steps from an input of two axes to one to three outputs, and lies about some of its tensors."""
    names = ["x"]
    nodes: list[onnx.NodeProto] = []
    for number in range(draw(st.integers(1, 6))):
        nodes += draw(st.sampled_from(STEPS))(draw(st.sampled_from(names[-2:])), f"t{number}")
        names.append(f"t{number}")
    shape = draw(st.sampled_from([["N", "S"], ["N", None], [None, None], [2, "S"]]))
    outputs = list(dict.fromkeys([names[-1], *draw(st.lists(st.sampled_from(names[1:]), max_size=2))]))
    graph = helper.make_graph(
        nodes,
        "lies",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [helper.make_tensor("zero", INT64, [1], [0])],
    )
    _lie(draw, graph)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _lie(draw: Draw, graph: onnx.GraphProto) -> None:
    """Say something, mostly wrong, of some of the tensors that the nodes of a graph compute, and of its outputs."""
    computed = [name for node in graph.node for name in node.output]
    for name in draw(st.lists(st.sampled_from(computed), unique=True, max_size=4)):
        graph.value_info.append(_something(draw, name))
    for info in graph.output:
        if draw(st.booleans()):
            info.CopyFrom(_something(draw, info.name))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _lie(draw, attribute.g)


def _something(draw: Draw, name: str) -> onnx.ValueInfoProto:
    kind = draw(st.sampled_from([FLOAT, FLOAT, FLOAT, INT64]))
    return helper.make_tensor_value_info(name, kind, draw(st.lists(st.sampled_from(WRONG_SIZES), max_size=3)))


def _honest(proto: onnx.ModelProto) -> bytes:
    """The same model, without a word about its tensors."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)

    def silence(graph: onnx.GraphProto) -> None:
        del graph.value_info[:]
        for info in graph.output:
            info.ClearField("type")
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    silence(attribute.g)

    silence(copy.graph)
    return copy.SerializeToString()


def _runs(content: bytes, inputs: Sequence[Array]) -> list[list[Array] | TractError]:
    with warnings.catch_warnings(action="ignore", category=ModelWarning):
        runnable = tract.onnx().load_bytes(content).into_model().into_runnable()
    results: list[list[Array] | TractError] = []
    for array in inputs:
        try:
            results.append([one.to_numpy() for one in runnable.run([array])])
        except (InputError, RunError) as error:
            results.append(error)
    return results


@given(models())
def test_what_a_file_says_changes_no_number(proto: onnx.ModelProto) -> None:
    random = np.random.default_rng(0)
    first = proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value
    arrays = [
        random.integers(-1, 2, (first or n, s)).astype(np.float32) for n, s in zip(SIZES, (*SIZES[1:], 0), strict=True)
    ]
    for found, wanted in zip(_runs(proto.SerializeToString(), arrays), _runs(_honest(proto), arrays), strict=True):
        if isinstance(wanted, TractError):
            assert isinstance(found, TractError)
        elif isinstance(found, TractError):
            assert str(found.where).startswith(("node 't", "input 'x'"))
        else:
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


def _model(nodes: list[onnx.NodeProto], said: dict[str, list[int | str]], outputs: list[str]) -> bytes:
    infos = {name: helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in said.items()}
    graph = helper.make_graph(
        nodes,
        "said",
        [infos["x"]],
        [infos.get(name, helper.make_empty_tensor_value_info(name)) for name in outputs],
        [helper.make_tensor("zero", INT64, [1], [0])],
        value_info=[info for name, info in infos.items() if name not in ("x", *outputs)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


def test_a_number_in_a_file_does_not_overrule_a_name() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("ReduceMean", ["r"], ["y"], axes=[1])]
    content = _model(nodes, {"x": ["N", "S"], "r": ["N", 7]}, ["y"])
    with pytest.warns(ModelWarning, match=r"node 'r' \(Relu\): the file says N,7,f32, its operators give N,S,f32"):
        model = tract.onnx().load_bytes(content).into_model()
    (mean,) = model.into_runnable().run([np.ones((2, 5), np.float32)])
    np.testing.assert_array_equal(mean.to_numpy(), [[1.0], [1.0]])


@pytest.mark.parametrize("declared", [[1, 4], [], [1, "?"], ["T", 1, 4], [1, 1, 4]])
def test_outputs_that_are_declared_wrongly_load_with_one_warning(declared: list[int | str]) -> None:
    content = _model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["B", 4], "y": declared}, ["y"])
    with pytest.warns(ModelWarning, match="the file says") as caught:
        model = tract.onnx().load_bytes(content).into_model()
    assert len(caught) == 1
    assert str(model.output_fact(0)) == "B,4,f32"
    model.transform(tract.SetSymbols({"B": 3}))
    assert str(model.output_fact(0)) == "3,4,f32"


def test_a_batch_that_the_user_makes_symbolic() -> None:
    said: dict[str, list[int | str]] = {"x": [1, 3], "r": [1, 3], "y": [1, 1]}
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("ReduceMean", ["r"], ["y"], axes=[1])]
    model = tract.onnx().load_bytes(_model(nodes, said, ["y"]))
    model.set_input_fact(0, "B,3,f32")
    with pytest.warns(ModelWarning, match="2 tensors is set aside"):
        typed = model.into_model()
    assert str(typed.output_fact(0)) == "B,1,f32"


def test_what_fills_in_a_size_is_checked_also_where_only_the_size_is_read() -> None:
    """The number of non-zero elements is in the model, as the file says it; nothing else reads them."""
    nodes = [helper.make_node("NonZero", ["x"], ["r"]), helper.make_node("Shape", ["r"], ["y"])]
    said = helper.make_tensor_value_info("r", INT64, [1, 7])
    proto = onnx.load_from_string(_model(nodes, {"x": ["N"]}, ["y"]))
    proto.graph.value_info.append(said)
    runnable = tract.onnx().load_bytes(proto.SerializeToString()).into_model().into_runnable()
    (shape,) = runnable.run([np.ones(7, np.float32)])
    assert shape.to_numpy().tolist() == [1, 7]
    with pytest.raises(
        RunError, match=r"node 'r' .*its shape is \[1, 5\], .* \[_,7\]: the file says 1,7,i64\n.*ignore_v"
    ):
        runnable.run([np.ones(5, np.float32)])


def test_the_size_of_an_input_that_nobody_named_is_what_the_file_says_further_down() -> None:
    content = _model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["?", "?"], "y": ["?", 7]}, ["y"])
    runnable = tract.onnx().load_bytes(content).into_model().into_runnable()
    with pytest.raises(InputError, match=r"input 'x': axis 1 has size 5, the model wants x_0,7,f32"):
        runnable.run([np.ones((2, 5), np.float32)])
    assert runnable.run([np.ones((2, 7), np.float32)])[0].to_numpy().shape == (2, 7)


def test_what_the_user_says_is_a_contract() -> None:
    """It holds in every run; where it cannot hold, the model is refused."""
    content = _model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["N", "S"]}, ["y"])
    model = tract.onnx().load_bytes(content)
    model.set_output_fact(0, "N,7,f32")
    runnable = model.into_model().into_runnable()
    assert str(runnable.output_fact(0)) == "N,7,f32"
    with pytest.raises(
        RunError, match=r"its shape is \[2, 5\], it should be \[_,7\]: the fact that was given is N,7,f32"
    ):
        runnable.run([np.ones((2, 5), np.float32)])
    impossible = tract.onnx().load_bytes(content)
    impossible.set_output_fact(0, "N,S,1,f32")
    with pytest.raises(TractError, match="the fact that was given is N,S,1,f32, its operators give N,S,f32"):
        impossible.into_model()


def test_what_was_found_before_does_not_stand_against_what_is_said_now() -> None:
    model = tract.onnx().load_bytes(_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 3]}, ["y"]))
    model.analyse()
    assert str(model.output_fact(0)) == "1,3,f32"
    model.set_input_fact(0, "B,3,f32")
    assert str(model.into_model().output_fact(0)) == "B,3,f32"
