"""Every name and method of the page on `MemoizingDynamicInferer`, under Python's spelling."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from tract_inferers import (
    Batched,
    Batcher,
    ConstantGenerator,
    EpsilonInjector,
    Inferer,
    MemoizingDynamicInferer,
    RecurrentInfo,
    RecurrentTrackerWrapper,
    ScratchPad,
    StatefulInferer,
)
from tract_inferers.stateful import BaseWrapper

import tract_core as tract


def policy() -> bytes:
    """act = obs + noise, h_out = h + 1."""
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Add", ["obs", "noise"], ["act"]),
        helper.make_node("Add", ["h", "one"], ["h_out"]),
    ]
    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    inputs = [value(name, TensorProto.FLOAT, ["N", size]) for name, size in (("obs", 2), ("noise", 2), ("h", 3))]
    outputs = [value(name, TensorProto.FLOAT, ["N", size]) for name, size in (("act", 2), ("h_out", 3))]
    graph = helper.make_graph(nodes, "policy", inputs, outputs, [one])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


@pytest.fixture(params=["from_model", "from_typed"])
def inferer(request: pytest.FixtureRequest) -> MemoizingDynamicInferer:
    model = tract.onnx().load_bytes(policy())
    if request.param == "from_model":
        return MemoizingDynamicInferer.from_model(model, [2])
    return MemoizingDynamicInferer.from_typed(model.into_model(), preloaded_sizes=[2])


def observation(number: float) -> dict[str, np.ndarray]:
    return {"obs": np.full(2, number, "f"), "noise": np.ones(2, "f"), "h": np.zeros(3, "f")}


def test_inferer(inferer: MemoizingDynamicInferer) -> None:
    assert inferer.select_batch_size(7) == 7
    assert [tuple(slot) for slot in inferer.raw_input_shapes()] == [("obs", (2,)), ("noise", (2,)), ("h", (3,))]
    assert [tuple(slot) for slot in inferer.raw_output_shapes()] == [("act", (2,)), ("h_out", (3,))]
    assert list(inferer.input_shapes()) == list(inferer.raw_input_shapes())
    assert list(inferer.output_shapes()) == list(inferer.raw_output_shapes())
    inferer.begin_agent(3)
    inferer.end_agent(3)
    inferer.end_agent(3)
    pad = ScratchPad(inferer.raw_input_shapes(), inferer.raw_output_shapes())
    for agent in (5, 6, 9):
        pad.next(agent)
        pad.push(0, agent)
        pad.push(1, 0.5)
        pad.push(2, 0)
    view = pad.chunk(0, 3)
    inferer.infer_raw(view)
    np.testing.assert_array_equal(view.output_slot(0), [[5.5, 5.5], [6.5, 6.5], [9.5, 9.5]])


def test_inferer_ext(inferer: MemoizingDynamicInferer) -> None:
    assert inferer.infer_single(observation(1))["act"].tolist() == [2, 2]
    found = inferer.infer_batch({7: observation(1), 8: observation(2)})
    assert {agent: response["act"].tolist() for agent, response in found.items()} == {7: [2, 2], 8: [3, 3]}
    with pytest.deprecated_call():
        assert inferer.infer({7: observation(1)})[7]["act"].tolist() == [2, 2]
    batched = inferer.into_batched()
    assert isinstance(batched, Batched)
    batched.push(4, observation(3))
    assert batched.execute()[4]["act"].tolist() == [4, 4]
    assert isinstance(batched.into_parts()[1], Batcher)


def test_epsilon(inferer: MemoizingDynamicInferer) -> None:
    given = {"obs": np.ones(2, "f"), "h": np.zeros(3, "f")}
    ones = inferer.with_epsilon(ConstantGenerator.ones(), "noise")
    assert isinstance(ones, EpsilonInjector)
    assert ones.infer_single(given)["act"].tolist() == [2, 2]
    noisy = inferer.with_default_epsilon("noise")
    assert [slot.name for slot in noisy.input_shapes()] == ["obs", "h"]
    assert not np.array_equal(noisy.infer_single(given)["act"], noisy.infer_single(given)["act"])


def test_into_stateful(inferer: MemoizingDynamicInferer) -> None:
    stack = RecurrentTrackerWrapper.new(BaseWrapper(), inferer, [RecurrentInfo("h", "h_out")])
    stateful = inferer.into_stateful(stack)
    assert isinstance(stateful, StatefulInferer)
    assert [slot.name for slot in stateful.input_shapes()] == ["obs", "noise"]
    assert [slot.name for slot in stateful.output_shapes()] == ["act"]


def test_what_derives_from_the_protocol(inferer: MemoizingDynamicInferer) -> None:
    checked: Inferer = inferer  # for the type checker
    assert checked.select_batch_size(1) == 1
