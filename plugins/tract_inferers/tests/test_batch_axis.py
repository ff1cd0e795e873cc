from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_policies import (
    begins_at_zero,
    between,
    branch,
    convolution,
    embedded,
    lstm,
    masked,
    mlp,
    node,
    normed,
    onnx_file,
    picked_by_row,
    split_in_heads,
    tensor,
    two_grus,
    with_constants,
)
from plain_loop import plain_rows, random_observations
from tract_inferers import BasicInferer, DynamicInferer, FixedBatchInferer

import tract_core as tract
from tract_core.errors import InputError, Unsupported
from tract_core.model.typed import TypedModel

HIDDEN = {"h": 1, "c": 1, "h_out": 1, "c_out": 1}
SHAPE = node("Shape", ["x"], ["shape"])
COUNT = node("Gather", ["shape", "zero"], ["count"])

RIGHT: dict[str, tuple[bytes, dict[str, int]]] = {
    "mlp": (mlp("N"), {}),
    "reshape to -1,48": (convolution("unk__1", [-1, 48]), {}),
    "reshape to 0,-1": (convolution("unk__1", [0, -1]), {}),
    "reshape to -1,48, one agent": (convolution(1, [-1, 48]), {}),
    "reshape to 1,-1, one agent": (convolution(1, [1, -1]), {}),
    "reshape to 1,48, one agent": (convolution(1, [1, 48]), {}),
    "lstm": (lstm("N", "N", "N"), HIDDEN),
    "lstm, three symbols": (lstm("unk__1", "unk__2", "unk__3"), HIDDEN),
    "lstm, unknown sizes": (lstm(None, None, None), HIDDEN),
    "lstm, one agent": (lstm(1, 1, 1), HIDDEN),
    "lstm, one agent in its memory": (lstm("N", 1, 1), HIDDEN),
    "two grus": (two_grus("N"), HIDDEN),
    "two grus, one agent": (two_grus(1), HIDDEN),
    "masked": (masked("batch"), {}),
    "masked, one agent": (masked(1), {}),
    "normed": (normed("batch"), {}),
    "normed, one agent": (normed(1), {}),
    "embedded": (embedded("batch"), {}),
    "embedded, one agent": (embedded(1), {}),
    "begins at zero, one agent": (begins_at_zero(1), {}),
    "split in heads, one agent": (split_in_heads(), {}),
    "handed through": (
        onnx_file([node("Identity", ["h"], ["h_out"])], [tensor("h", [1, "N", 4])], [tensor("h_out", [1, "N", 4])]),
        HIDDEN,
    ),
    "same for all": (with_constants("batch"), {}),
    "same for all, one agent": (with_constants(1), {}),
    "picked by row": (picked_by_row("N"), {}),
    "picked by row, one agent": (picked_by_row(1), {}),
    "one axis for a while": (
        between(
            "N",
            [
                node("Reshape", ["x", "flat"], ["y"]),
                node("Tanh", ["y"], ["z"]),
                node("Reshape", ["z", "b"], ["action"]),
            ],
            {"flat": np.array([-1]), "b": np.array([-1, 5])},
        ),
        {},
    ),
    "beside a constant, one agent": (
        between(1, [node("Concat", ["x", "same"], ["action"], axis=1)], {"same": np.array([[1, 2]], np.float32)}),
        {},
    ),
    "mean over one agent": (
        between(1, [node("ReduceMean", ["x"], ["mean"], axes=[0]), node("Add", ["x", "mean"], ["action"])]),
        {},
    ),
    "divided by one": (
        between(1, [SHAPE, COUNT, node("Cast", ["count"], ["n"], to=1), node("Div", ["x", "n"], ["action"])]),
        {},
    ),
    "branch of one agent": (
        between(
            1,
            [
                SHAPE,
                COUNT,
                node("Equal", ["count", "one"], ["alone"]),
                node(
                    "If",
                    ["alone"],
                    ["action"],
                    then_branch=branch("then", node("Neg", ["x"], ["a"])),
                    else_branch=branch("else", node("Exp", ["x"], ["b"])),
                ),
            ],
        ),
        {},
    ),
    "along the second axis": (
        onnx_file(
            [node("CumSum", ["obs", "zero"], ["action"])],
            [tensor("obs", [1, 1, 4])],
            [tensor("action", [1, 1, 4])],
            {"zero": np.array(0)},
        ),
        {"obs": 1, "action": 1},
    ),
}


def load(content: bytes) -> Any:
    return tract.onnx().load_bytes(content)


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize(("content", "axes"), RIGHT.values(), ids=list(RIGHT))
def test_agents_are_found_and_get_what_each_gets_alone(content: bytes, axes: dict[str, int], *, typed: bool) -> None:
    model = load(content).into_model() if typed else load(content)
    if typed and content == picked_by_row(1):
        with pytest.raises(Unsupported, match="is for one agent: behind it, it cannot be told where several would"):
            DynamicInferer.from_typed(model)
        return
    inferers = [
        DynamicInferer.from_model(model),
        FixedBatchInferer.from_model(model, [3]),
        BasicInferer.from_model(model),
    ]
    observations = random_observations(inferers[0], 4)
    expected = plain_rows(content, observations, axes)
    for inferer in inferers:
        assert inferer.input_shapes() == inferers[0].input_shapes()
        assert inferer.output_shapes() == inferers[0].output_shapes()
        found = inferer.infer_many(range(4), observations).arrays
        assert list(found) == list(expected)
        for name, array in expected.items():
            wanted = array.reshape(found[name].shape)
            np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-6, err_msg=name)
            assert found[name].dtype == array.dtype


MEETING: dict[str, tuple[list[Any], str]] = {
    "sum": (
        [node("ReduceMean", ["x"], ["mean"], axes=[0]), node("Sub", ["x", "mean"], ["action"])],
        r"node 'mean.*\(Reduce\): computes along the axis of agents, so what one of them gets depends",
    ),
    "softmax": ([node("Softmax", ["x"], ["action"], axis=0)], r"node 'action' \(Softmax\): computes along the axis"),
    "running sum": ([node("CumSum", ["x", "zero"], ["action"])], r"node 'action' \(CumSum\): computes along"),
    "products of agents": (
        [
            node("Transpose", ["x"], ["turned"], perm=[1, 0]),
            node("MatMul", ["x", "turned"], ["scores"]),
            node("MatMul", ["scores", "x"], ["action"]),
        ],
        r"node 'scores' \(EinSum\): computes along the axis of agents",
    ),
    "their number": (
        [SHAPE, COUNT, node("Cast", ["count"], ["n"], to=1), node("Div", ["x", "n"], ["action"])],
        r"node 'count' \(Const\): depends on how many agents there are, output 'action' of one",
    ),
    "one after the other": (
        [
            node("Reshape", ["x", "flat"], ["y"]),
            node("CumSum", ["y", "zero"], ["z"]),
            node("Reshape", ["z", "rows"], ["action"]),
        ],
        r"node 'y' \(Reshape\): computes along the axis of agents, output 'action' of one agent is another one",
    ),
    "turned around": (
        [node("Slice", ["x", "last", "before", "zeros", "last"], ["action"])],
        r"computes along the axis of agents, output 'action' of one agent is another one when others are there",
    ),
    "where one is large": (
        [
            node("Reshape", ["x", "flat"], ["y"]),
            node("ReduceMax", ["y"], ["most"], axes=[0]),
            node("Greater", ["most", "ten"], ["large"]),
            node("Where", ["large", "nothing", "x"], ["action"]),
        ],
        r"node 'y' \(Reshape\): computes along the axis of agents, output 'action' of one agent is another one",
    ),
    "the largest of all": (
        [node("TopK", ["x", "ones"], ["largest", "_"], axis=0), node("Add", ["x", "largest"], ["action"])],
        r"node 'largest' \(Topk\): computes along the axis of agents, so what",
    ),
    "one condition": (
        [
            node("Slice", ["x", "zeros", "ones", "zeros"], ["first"]),
            node("ReduceSum", ["first"], ["sum"], keepdims=0),
            node("Greater", ["sum", "nothing"], ["positive"]),
            node(
                "If",
                ["positive"],
                ["action"],
                then_branch=branch("then", node("Neg", ["x"], ["a"])),
                else_branch=branch("else", node("Exp", ["x"], ["b"])),
            ),
        ],
        r"node 'action' \(IfThenElse\): computes along the axis of agents, so what one of them gets",
    ),
}
CONSTANTS = {"flat": np.array([-1]), "rows": np.array([-1, 5]), "last": np.array([-1]), "before": np.array([-(2**62)])}
CONSTANTS |= {"nothing": np.array(0, np.float32), "ten": np.array(10, np.float32)}


@pytest.mark.parametrize(("nodes", "message"), MEETING.values(), ids=list(MEETING))
def test_agents_that_meet_are_refused(nodes: list[Any], message: str) -> None:
    content = between("N", nodes, CONSTANTS)
    for model in (load(content), load(content).into_model()):
        with pytest.raises(Unsupported, match=message) as caught:
            DynamicInferer.from_model(model)
        assert "BasicInferer runs agents one by one" in str(caught.value)
    basic = BasicInferer.from_model(load(content))
    observations = random_observations(basic, 3)
    expected = plain_rows(content, observations)["action"]
    np.testing.assert_allclose(basic.infer_many(range(3), observations).arrays["action"], expected, rtol=1e-5)


def through(shape: list[Any], kind: Any = np.float32) -> bytes:
    return onnx_file(
        [node("Identity", ["obs"], ["action"])], [tensor("obs", shape, kind)], [tensor("action", shape, kind)]
    )


REFUSED: dict[str, tuple[bytes, str]] = {
    "no axis": (through([64]), "input 'obs': 64,f32 has no axis of agents: no size is a symbol, or 1\n.*N,64,f32"),
    "eight agents": (through([8, 64]), "input 'obs': 8,64,f32 has no axis of agents"),
    "a number": (through([]), "input 'obs': f32 has no axis of agents"),
    "two symbols": (
        through(["N", "S", 4]),
        r"one size can be the number of agents, there are more: obs: N,S,4,f32\n.*set_symbols.*\"S\": 16",
    ),
    "no inputs": (
        onnx_file(
            [node("Identity", ["a"], ["action"])], [], [tensor("action", [1, 3])], {"a": np.zeros((1, 3), np.float32)}
        ),
        "the model has no inputs, so nothing is to be observed",
    ),
    "no agents in an output": (
        onnx_file([node("ReduceSum", ["obs"], ["sum"])], [tensor("obs", ["N", 3])], [tensor("sum", [1, 1])]),
        "output 'sum': 1,1,f32 does not have the size N, that of the agents, once\n.*set_output_names",
    ),
    "agents twice in an output": (
        onnx_file(
            [node("Transpose", ["obs"], ["t"], perm=[1, 0]), node("MatMul", ["obs", "t"], ["action"])],
            [tensor("obs", ["N", 3])],
            [tensor("action", ["N", "N"])],
        ),
        "output 'action': N,N,f32 does not have the size N, that of the agents, once",
    ),
    "even numbers only": (
        between(
            "N",
            [
                node("Reshape", ["x", "pairs"], ["y"]),
                node("Tanh", ["y"], ["z"]),
                node("Reshape", ["z", "rows"], ["action"]),
            ],
            {"pairs": np.array([-1, 10]), "rows": np.array([-1, 5])},
        ),
        r"does not take 5 agents: ",
    ),
    "too large to try": (
        between(
            "N",
            [
                node("Expand", ["x", "many"], ["y"]),
                node("Reshape", ["y", "flat"], ["z"]),
                node("ReduceMax", ["z"], ["most"], axes=[0]),
                node("Add", ["x", "most"], ["action"]),
            ],
            {"many": np.array([2**27, 1, 5]), "flat": np.array([-1])},
        ),
        r"node 'z' \(Reshape\): computes along the axis of agents, and '[a-z]+' is too large to try whether they meet",
    ),
    "a choice that others seldom change": (
        between(
            "N",
            [
                SHAPE,
                COUNT,
                node("Unsqueeze", ["count", "zeros"], ["counts"]),
                node("Concat", ["five", "counts"], ["turned"], axis=0),
                node("Reshape", ["x", "turned"], ["y"]),
                node("Add", ["y", "far"], ["z"]),
                node("ArgMax", ["z"], ["best"], axis=0),
                node("Cast", ["best"], ["action"], to=1),
            ],
            {"five": np.array([5]), "far": np.arange(5, dtype=np.float32)[:, None] * 33},
        ),
        r"node 'y' \(Reshape\): computes along the axis of agents, output 'action' of one agent is another one",
    ),
    "integers, where one is above 1": (
        onnx_file(
            [
                node("Reshape", ["ids", "flat"], ["y"]),
                node("ReduceMax", ["y"], ["most"], axes=[0]),
                node("Max", ["most", "one"], ["scale"]),
                node("Mul", ["ids", "scale"], ["action"]),
            ],
            [tensor("ids", ["N", 3], np.int64)],
            [tensor("action", ["N", 3], np.int64)],
            {"flat": np.array([-1]), "one": np.array([1])},
        ),
        r"node 'y' \(Reshape\): computes along the axis of agents, output 'action' of one agent is another one",
    ),
    "one agent in its shape": (
        convolution("N", [1, -1]),
        r"node 'action' \(MatMul\): does not take 2 agents: size 48\*N must be 48",
    ),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_refused_says_where_and_why(content: bytes, message: str) -> None:
    for model in (load(content), load(content).into_model()):
        with pytest.raises(Unsupported, match=message):
            DynamicInferer.from_model(model)


def test_a_shape_that_fits_one_agent_only_is_refused_by_both_ways() -> None:
    table = np.arange(10, dtype=np.float32).reshape(2, 5)
    nodes = [node("Concat", ["x", "table"], ["three"], axis=0), node("ReduceMax", ["three"], ["action"], axes=[0])]
    content = between(1, nodes, {"table": table})
    wanted = {
        load(content): "output 'action': 1,5,f32 does not have the size N",
        load(content).into_model(): r"node '.*' \(.*\): is for one agent: .*\n.*BasicInferer takes it",
    }
    for model, message in wanted.items():
        with pytest.raises(Unsupported, match=message):
            DynamicInferer.from_model(model)
        assert BasicInferer.from_model(model).output_shapes()[0].shape == (5,)


def test_observations_that_no_memory_holds_are_refused() -> None:
    with pytest.raises(Unsupported, match="model: 'obs' is too large to try whether they meet"):
        DynamicInferer.from_model(load(through([1, 2**40])))


def test_texts_are_refused() -> None:
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info("obs", TensorProto.STRING, ["N", 2])
    result = helper.make_tensor_value_info("action", TensorProto.STRING, ["N", 2])
    content = onnx_file([node("Identity", ["obs"], ["action"])], [value], [result])
    for made in (DynamicInferer.from_model, BasicInferer.from_model):
        with pytest.raises(Unsupported, match=r"'obs': is (?i:string), wanted numbers"):
            made(load(content))


def test_a_model_of_pulses_is_refused() -> None:
    model = load(
        onnx_file([node("Tanh", ["obs"], ["action"])], [tensor("obs", [1, "S"])], [tensor("action", [1, "S"])])
    ).into_model()
    model.transform('{"name": "pulse", "pulse": 4, "symbol": "S"}')
    with pytest.raises(Unsupported, match="it takes a signal in pulses"):
        BasicInferer.from_model(model)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"a policy is made of an InferenceModel or a Model, got str\n  hint: load it first"
    ):
        DynamicInferer.from_model("policy.onnx")  # pyright: ignore[reportArgumentType]: that is the point


def test_names_are_those_of_the_model() -> None:
    nodes = [node("Tanh", ["obs:0"], ["action_0"]), node("Identity", ["obs:0"], ["same:0"])]
    outputs = [tensor("action_0", ["N", 3]), tensor("same:0", ["N", 3])]
    inferer = DynamicInferer.from_model(load(onnx_file(nodes, [tensor("obs:0", ["N", 3])], outputs)))
    assert [slot.name for slot in (*inferer.input_shapes(), *inferer.output_shapes())] == [
        "obs:0",
        "action_0",
        "same:0",
    ]


def test_a_symbolic_size_that_is_not_the_agents_can_be_given_a_value() -> None:
    model = load(through(["N", "S", 4])).into_model()
    model.transform('{"name": "set_symbols", "values": {"S": 16}}')
    assert DynamicInferer.from_model(model).input_shapes()[0].shape == (16, 4)


def test_the_graph_of_the_model_is_not_touched() -> None:
    model = load(lstm(1, 1, 1))
    before = [model.input_fact(number) for number in range(3)]
    DynamicInferer.from_model(model)
    assert [model.input_fact(number) for number in range(3)] == before
    typed: TypedModel = model.into_model().typed
    assert typed.symbols.names == ()
    DynamicInferer.from_model(typed)
    assert typed.symbols.names == ()
