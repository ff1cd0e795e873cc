"""What is wrong elsewhere, number by number of the list in the specification, and right here."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from onnx_policies import lstm, mlp, node, onnx_file, tensor, weights
from toy_policies import Toy, observation
from tract_inferers import (
    AssetData,
    BaseWrapper,
    BasicInferer,
    Batcher,
    BrainsFailed,
    ConstantGenerator,
    DynamicInferer,
    EpsilonInjectorWrapper,
    FixedBatchInferer,
    IncompatibleInferer,
    Inferer,
    MemoizingDynamicInferer,
    ModelApi,
    RecurrentInfo,
    RecurrentTracker,
    RecurrentTrackerWrapper,
    Runtime,
    ScratchPadView,
    StatefulInferer,
)

import tract_core as tract
from tract_core.errors import CorruptModel, InputError, RunError, Unsupported


def load(content: bytes) -> Any:
    return tract.onnx().load_bytes(content)


def noisy() -> bytes:
    """act = obs + noise; h_out = h + 1, with h the first input."""
    nodes = [node("Add", ["obs", "noise"], ["act"]), node("Add", ["h", "one"], ["h_out"])]
    inputs = [tensor("h", ["N", 3]), tensor("obs", ["N", 2]), tensor("noise", ["N", 2])]
    return onnx_file(nodes, inputs, [tensor("h_out", ["N", 3]), tensor("act", ["N", 2])], {"one": np.ones(1, "f")})


def test_1_missing_keys_unknown_keys_and_errors_leave_no_stale_row() -> None:
    toy = Toy(failing=[1])
    batcher = Batcher(toy)
    batcher.push(1, observation(9, 9))
    batcher.execute(toy)
    for bad in ({"first": np.ones((2, 3), "f")}, {**observation(1), "other": 1}):
        with pytest.raises(InputError):
            batcher.push(2, bad)
    assert batcher.is_empty()
    batcher.push(3, observation(3, 3))
    with pytest.raises(RunError):
        batcher.execute(toy)
    batcher.push(4, observation(4, 4))
    assert {agent: int(found["twice"]) for agent, found in batcher.execute(toy).items()} == {3: 6, 4: 8}


def test_2_a_layer_invokes_the_one_below_once() -> None:
    toy = Toy()

    class Counting(BaseWrapper):
        calls = 0

        def invoke(self, inferer: Inferer, pad: ScratchPadView) -> None:
            self.calls += 1
            super().invoke(inferer, pad)

    base = Counting()
    stack = EpsilonInjectorWrapper.with_generator(base, toy, ConstantGenerator.ones(), "first")
    StatefulInferer(stack, toy).infer_single({"second": 1})
    assert (base.calls, toy.calls) == (1, [1])


@pytest.mark.parametrize("noise_first", [True, False])
def test_3_noise_goes_to_its_slot_whatever_is_hidden(noise_first: bool) -> None:
    policy = DynamicInferer.from_model(load(noisy()))
    infos = [RecurrentInfo("h", "h_out")]
    if noise_first:
        layer = EpsilonInjectorWrapper.with_generator(BaseWrapper(), policy, ConstantGenerator.for_value(5), "noise")
        stateful: Any = policy.into_stateful(RecurrentTrackerWrapper.new(layer, policy, infos))
    else:
        memory = RecurrentTracker.new(policy, infos)
        stateful = memory.with_epsilon(ConstantGenerator.for_value(5), "noise")
    stateful.begin_agent(0)
    for _ in range(2):
        assert stateful.infer_single({"obs": [1, 2]})["act"].tolist() == [6, 7]
    np.testing.assert_array_equal(stateful.snapshot([0]).arrays["h"], [[2, 2, 2]])


def test_4_what_is_hidden_stays_hidden_through_whatever_type_holds_it() -> None:
    held: Inferer = RecurrentTracker.new(DynamicInferer.from_model(load(noisy())), [RecurrentInfo("h", "h_out")])
    runtime = Runtime()
    brain = runtime.add_inferer(held)
    for inputs, outputs in (
        (held.input_shapes(), held.output_shapes()),
        (runtime.input_shapes(brain), runtime.output_shapes(brain)),
    ):
        assert [slot.name for slot in inputs] == ["obs", "noise"]
        assert [slot.name for slot in outputs] == ["act"]
    assert [slot.name for slot in held.raw_input_shapes()] == ["h", "obs", "noise"]


def test_5_zeros_are_zeros() -> None:
    policy = DynamicInferer.from_model(load(noisy())).with_epsilon(ConstantGenerator.zeros(), "noise")
    assert policy.infer_single({"h": [0, 0, 0], "obs": [1, 2]})["act"].tolist() == [1, 2]


def test_6_policies_are_compatible_when_everything_is_the_same_also_the_number() -> None:
    stateful = StatefulInferer(BaseWrapper(), DynamicInferer.from_model(load(mlp("N"))))
    inputs, outputs = [tensor("obs", ["N", 64]), tensor("more", ["N", 1])], [tensor("action", ["N", 8])]
    nodes = [node("MatMul", ["obs", "w"], ["action"])]
    more = DynamicInferer.from_model(load(onnx_file(nodes, inputs, outputs, {"w": weights(64, 8)})))
    before = stateful.inferer
    for attempt in (stateful.replace_inferer, stateful.with_new_inferer):
        with pytest.raises(
            IncompatibleInferer,
            match="input 1, more: 1,float32, is one too many; all",
        ):
            attempt(more)
    assert stateful.inferer is before


def test_7_a_brain_that_failed_runs_again_and_so_do_the_others() -> None:
    runtime = Runtime()
    brains = [runtime.add_inferer(Toy(failing=[0])), runtime.add_inferer(Toy()), runtime.add_inferer(Toy())]
    for brain in brains:
        runtime.push(brain, 1, observation(1))
    with pytest.raises(BrainsFailed) as failed:
        runtime.run_for(1e9)
    assert list(failed.value.responses) == brains[1:]
    assert list(runtime.run_for(1e9)) == brains[:1]


def test_8_errors_in_threads_are_errors() -> None:
    with Runtime(threads=2) as runtime:
        brains = [runtime.add_inferer(Toy(failing=[0])), runtime.add_inferer(Toy())]
        for brain in brains:
            runtime.push(brain, 1, observation(1))
        with pytest.raises(BrainsFailed) as failed:
            runtime.run_threaded()
        assert list(failed.value.errors) == brains[:1]
        assert list(failed.value.responses) == brains[1:]


def test_9_a_pad_without_room_grows_and_a_batch_of_no_rows_is_none() -> None:
    toy = Toy()
    batcher = Batcher.new_sized(toy, 0)
    batcher.extend({agent: observation(agent, agent) for agent in range(9)})
    assert batcher.execute(toy)[8]["twice"] == 16
    assert FixedBatchInferer.from_model(load(mlp("N")), [4]).infer_many([], {"obs": np.zeros((0, 64), "f")}).ids == []


@pytest.mark.parametrize("batch", [1, "N", "unk__126", None])
def test_10_shapes_leave_the_agents_out_and_nothing_else_and_names_are_kept(batch: Any) -> None:
    nodes = [node("Add", ["late", "obs:0_0"], ["act_0"])]
    inputs = [tensor("late", [batch, 1, 4]), tensor("obs:0_0", [batch, 1, 4])]
    # The inputs do not come first among the nodes, as one has a constant before it.
    model = load(onnx_file(nodes, inputs, [tensor("act_0", [batch, 1, 4])]))
    api = ModelApi.for_model(model)
    assert [tuple(slot) for slot in api.inputs] == [("late", (1, 4)), ("obs:0_0", (1, 4))]
    assert [tuple(slot) for slot in api.outputs] == [("act_0", (1, 4))]


def test_10_a_symbolic_size_beside_the_agents_is_refused() -> None:
    nodes = [node("Identity", ["obs"], ["act"])]
    model = load(onnx_file(nodes, [tensor("obs", ["N", "S", 4])], [tensor("act", ["N", "S", 4])]))
    with pytest.raises(Unsupported, match=r"N,S,4,f32(?s:.*)set_symbols"):
        DynamicInferer.from_model(model)


def test_11_operators_of_onnx_alone_are_written_and_read_again() -> None:
    # Det is an operator that only ONNX has.
    model = onnx_file([node("Det", ["obs"], ["act"])], [tensor("obs", ["N", 2, 2])], [tensor("act", ["N"])])
    asset = AssetData("onnx", model).to_nnef()
    found = AssetData.deserialize(asset.serialize()).load_dynamic().infer_single({"obs": [[1, 2], [3, 5]]})
    np.testing.assert_allclose(found["act"], -1, rtol=1e-6)


def test_12_a_slow_first_run_is_no_estimate() -> None:
    now = 0.0

    class Slow(Toy):
        def infer_raw(self, pad: ScratchPadView) -> None:
            nonlocal now
            now += 10.0 if not self.calls else 0.001
            super().infer_raw(pad)

    runtime = Runtime(clock=lambda: now)
    brain = runtime.add_inferer(Slow())
    for _ in range(3):
        runtime.push(brain, 1, observation(1))
        runtime.run()
    assert runtime.stats(brain).p99 == pytest.approx(0.001)


def test_13_plans_that_are_kept_are_bounded() -> None:
    policy = MemoizingDynamicInferer.from_model(load(mlp("N")), capacity=2)
    for rows in (1, 2, 3, 4):
        policy.infer_many(range(rows), {"obs": np.zeros((rows, 64), "f")})
    assert policy.sizes == [3, 4]


def test_14_agents_that_were_never_begun_are_told() -> None:
    policy = RecurrentTracker.wrap(DynamicInferer.from_model(load(lstm("N", "N", "N"))))
    with pytest.raises(InputError, match=r"agent 7 has not begun(?s:.*)begin_agent\(7\)"):
        policy.infer_batch({7: {"obs": np.zeros(8, "f")}})


def test_15_headers_are_checked_and_short_reads_read_on() -> None:
    content = AssetData("onnx", mlp("N")).serialize()

    class Slow(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(1 if size is None or size < 0 else min(size, 1))

    assert AssetData.deserialize(Slow(content[:5000])).data == content[8:5000]
    with pytest.raises(CorruptModel, match="1"):
        AssetData.deserialize(content[:4] + b"\x01" + content[5:])


def test_a_policy_for_one_agent_runs_many() -> None:
    """Beyond the list: a model whose 1 cannot become a symbol runs its agents one by one."""
    nodes = [node("Reshape", ["obs", "shape"], ["flat"]), node("ReduceSum", ["flat"], ["act"], keepdims=1)]
    model = load(onnx_file(nodes, [tensor("obs", [1, 4])], [tensor("act", [1])], {"shape": np.array([4])}))
    with pytest.raises(Unsupported):
        DynamicInferer.from_model(model)
    rows = np.arange(8, dtype=np.float32).reshape(2, 4)
    found = BasicInferer.from_model(model).infer_many([0, 1], {"obs": rows})
    np.testing.assert_array_equal(found.arrays["act"].reshape(2), rows.sum(axis=1))
