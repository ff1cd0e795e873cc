"""The state of loops, as inputs and outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tract_core import Model, runtime_for_name
from tract_core.model import TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.ops.binary import Add, Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.transforms.scan_state import ExportScanState, ForceScanExternalState

X = np.array([[3, 4], [-1, 0.5], [np.inf, 2], [0.25, -8]], np.float32)


def looping(
    size: int = 1, *, states: int = 1, start: str = "constant", last: bool = False, **options: Any
) -> TypedModel:
    """Running sums of ``x: size,2`` along its first axis; with two states also products of what the sums were."""
    body = TypedModel()
    before = [body.add_source(f"state{place}", parse_typed_fact("1,2,f32", body.symbols)) for place in range(states)]
    item = body.add_source("item", parse_typed_fact("1,2,f32", body.symbols))
    (total,) = body.wire_node("total", Add(), [before[0], item])
    after = [total]
    if states == 2:
        after += body.wire_node("product", Mul(), [before[1], before[0]])
    body.set_outputs(after)
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"{size},2,f32", model.symbols))
    starts = [_start(model, f"start{place}", start, float(place + 1)) for place in range(states)]
    mapped = (
        OutputMapping(state=True, full=FullOutput(0, 0), last=1 if last else None),
        OutputMapping(state=True, last=2 if last else 1),
    )
    scan = Scan(body, (*[StateInput()] * states, ScannedInput(0)), mapped[:states], **options)
    model.set_outputs(model.wire_node("loop", scan, [*starts, x])[:1])
    return model


def _start(model: TypedModel, name: str, kind: str, value: float) -> Any:
    if kind == "input":
        return model.add_source(name, parse_typed_fact("1,2,f32", model.symbols))
    if kind == "constant":
        return model.add_const(name, np.full((1, 2), value, np.float32))
    number = model.add_const(f"{name}.number", np.float32(value).reshape(1, 1))
    return model.wire_node(name, MultiBroadcastTo(parse_typed_fact("1,2,f32", model.symbols).shape), [number])[0]


def sums(products: float = 2.0) -> tuple[list[Any], list[Any]]:
    """What the turns give, and what the second state is after each."""
    total, product, found, kept = np.ones(2), np.full(2, products), [], []
    for row in X.astype(np.float64):
        product, total = product * total, total + row
        found.append(total.astype(np.float32)[None])
        kept.append(product.astype(np.float32)[None])
    return found, kept


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("start", ["constant", "computed"])
@pytest.mark.parametrize("states", [1, 2])
def test_the_state_goes_in_and_comes_out(states: int, start: str, last: bool, runtime: str) -> None:
    model = looping(states=states, start=start, last=last)
    exported = ExportScanState().apply(model)
    exported.check_consistency()
    numbers = [""] if states == 1 else [".0", ".1"]
    assert [exported.outlet_name(one) for one in exported.inputs] == ["x", *(f"loop.state_in{n}" for n in numbers)]
    assert [exported.outlet_name(one) for one in exported.outputs][1:] == [f"loop.state_out{n}" for n in numbers]
    wanted, products = sums()
    runnable = runtime_for_name(runtime).prepare(Model.from_typed(exported))
    kept = [np.full((1, 2), place + 1, np.float32) for place in range(states)]
    with np.errstate(invalid="ignore"):
        for place, row in enumerate(X):
            found, *kept = (one.to_numpy() for one in runnable.run([row[None], *kept]))
            np.testing.assert_array_equal(found, wanted[place])
            np.testing.assert_array_equal(kept[0], wanted[place])
            if states == 2:
                np.testing.assert_array_equal(kept[1], products[place])


def test_what_is_left_is_no_loop() -> None:
    for states in (1, 2):
        model = looping(states=states)
        assert any(isinstance(node.op, Scan) for node in model.declutter().live_nodes())
        left = ExportScanState().apply(model).declutter()
        assert not any(isinstance(node.op, Scan) for node in left.live_nodes())


@pytest.mark.parametrize(
    "model",
    [
        looping(4),
        looping(0),
        looping(skip=1),
        looping(start="input"),
        looping(reset_every_turn=True),
    ],
    ids=["four iterations", "none", "skipped", "begins with an input", "keeps no state"],
)
def test_other_loops_stay(model: TypedModel) -> None:
    assert same_model(ExportScanState().apply(model), model)


def test_the_model_itself_stays_and_a_second_time_finds_nothing() -> None:
    model = looping()
    once = ExportScanState().apply(model)
    assert len(model.inputs) == 1
    assert same_model(ExportScanState().apply(once), once)


def test_names_that_are_taken() -> None:
    model = looping()
    model.set_outputs([*model.outputs, model.add_source("loop.state_in", parse_typed_fact("2,f32", model.symbols))])
    model.inputs.pop()
    model.inputs.append(model.outputs[-1])
    names = [ExportScanState().apply(model).outlet_name(one) for one in ExportScanState().apply(model).inputs]
    assert len(set(names)) == 3


def test_the_properties_of_a_stream_tell_of_the_new_ones() -> None:
    model = looping()
    model.properties.update(
        {
            "pulse.input_axes": np.array([0]),
            "pulse.output_axes": np.array([0]),
            "pulse.delay": np.array([2]),
            "pulse.output_lengths": np.array(["S"], object),
        }
    )
    found = ExportScanState().apply(model).properties
    assert found["pulse.input_axes"].tolist() == [0, -1]
    assert found["pulse.output_axes"].tolist() == [0, -1]
    assert found["pulse.delay"].tolist() == [2, 0]
    assert found["pulse.output_lengths"].tolist() == ["S", ""]
    assert model.properties["pulse.delay"].tolist() == [2]


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_with_external_state_every_turn_begins_afresh(runtime: str) -> None:
    forced = ForceScanExternalState().apply(looping(2))
    ops = [node.op for node in forced.live_nodes() if isinstance(node.op, Scan)]
    assert [op.external_state for op in ops] == [True]
    state = runtime_for_name(runtime).prepare(Model.from_typed(forced)).spawn_state()
    for turn in range(2):
        (found,) = state.run([X[2 * turn : 2 * turn + 2]])
        np.testing.assert_array_equal(found.to_numpy(), 1 + np.cumsum(X[2 * turn : 2 * turn + 2], 0))
    kept = runtime_for_name(runtime).prepare(Model.from_typed(looping(2))).spawn_state()
    assert not np.array_equal(
        [one.to_numpy() for one in kept.run([X[:2]])], [one.to_numpy() for one in kept.run([X[:2]])]
    )
    assert ops[0] == replace(ops[0], external_state=True)
