from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_policies import between, node
from random_policies import Grown, grow
from tract_inferers import AssetData, AssetKind, BasicInferer, DynamicInferer, FixedBatchInferer, Inferer

import tract_core as tract
from tract_core.api.model import Model
from tract_core.api.runtime import runtime_for_name
from tract_core.errors import TractError, Unsupported

Array = np.ndarray[Any, Any]

ROWS = 7


def observations(grown: Grown) -> list[Array]:
    """Rows of very different sizes, with the agents along axis 0."""
    random = np.random.default_rng(grown.seed)
    scales = np.array([1, 0, 1, 100, 0.01, -1, 1])
    found: list[Array] = []
    for held in grown.inputs:
        place = held.agents or 0
        shape = (ROWS, *held.shape[:place], *held.shape[place + 1 :])
        normal = random.standard_normal(shape) * scales.reshape(-1, *[1] * (len(shape) - 1))
        found.append((normal if held.kind is np.float32 else random.integers(0, 2, shape)).astype(held.kind))
    return found


def alone(grown: Grown, given: list[Array]) -> list[list[Array]]:
    """For each row, the outputs of the model as it was exported, for one agent, by NumPy. Raises TractError."""
    model = tract.onnx().load_bytes(grown.content).into_model().typed
    ones = {symbol: 1 for outlet in model.inputs for symbol in model.outlet_fact(outlet).shape.symbols()}
    runnable = runtime_for_name("reference").prepare(Model(model.substitute(ones).clone()))
    rows = [
        [array[row].reshape(held.shape) for array, held in zip(given, grown.inputs, strict=True)] for row in range(ROWS)
    ]
    return [[tensor.to_numpy() for tensor in runnable.run(row)] for row in rows]


def made(grown: Grown) -> Iterator[Inferer]:
    """The policies that there are of a model. What is refused must say what to do."""
    model = tract.onnx().load_bytes(grown.content)
    ways = [
        lambda: BasicInferer.from_model(model),
        lambda: DynamicInferer.from_model(model),
        lambda: DynamicInferer.from_typed(model.into_model()),
        lambda: FixedBatchInferer.from_model(model, [2, 4]),
        lambda: AssetData(AssetKind.ONNX, grown.content).to_nnef().load_dynamic(),
    ]
    for way in ways:
        try:
            yield way()
        except TractError as error:
            if not error.hint:
                raise


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_each_agent_gets_what_it_gets_alone(seed: int, steps: int) -> None:
    grown = grow(seed, steps)
    given = observations(grown)
    with np.errstate(all="ignore"):
        try:
            expected = alone(grown, given)
        except TractError:  # no model for one agent either
            return
        for inferer in made(grown):
            named = {
                slot.name: array.reshape(ROWS, *slot.shape)
                for slot, array in zip(inferer.input_shapes(), given, strict=True)
            }
            found = inferer.infer_many(range(ROWS), named).arrays
            for slot, column in zip(inferer.output_shapes(), zip(*expected, strict=True), strict=True):
                for row, wanted in enumerate(column):
                    assert_near(found[slot.name][row], wanted.reshape(slot.shape))


def assert_near(found: Array, wanted: Array) -> None:
    assert found.dtype == wanted.dtype
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    finite = np.abs(wanted[np.isfinite(wanted)])
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-5 * max(1, finite.max(initial=0)))


STILL = [node("Mul", ["noise", "nothing"], ["still"]), node("Add", ["y", "still"], ["action"])]
NOISY = [node("RandomNormalLike", ["x"], ["noise"])]
TURNED = [node("Reshape", ["x", "turned"], ["z"]), node("Transpose", ["z"], ["y"], perm=[1, 0])]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([*NOISY, *TURNED, *STILL], r"node 'z' \(Reshape\): computes along the axis of agents, output 'action' of one"),
        (
            [node("RandomNormalLike", ["x"], ["action"], seed=3.0)],
            r"node 'action' \(RandomLike\): computes along the axis of agents, output 'action' of one agent is another",
        ),
    ],
    ids=["meeting beside noise", "noise with a seed"],
)
def test_noise_hides_no_agents(nodes: list[Any], message: str) -> None:
    constants = {"nothing": np.array(0, np.float32), "turned": np.array([5, -1])}
    with pytest.raises(Unsupported, match=message):
        DynamicInferer.from_model(tract.onnx().load_bytes(between("N", nodes, constants)))


@pytest.mark.parametrize("batch", ["N", 1])
def test_each_agent_has_noise_of_its_own(batch: str | int) -> None:
    nodes = [*NOISY, node("Add", ["x", "noise"], ["action"])]
    inferer = DynamicInferer.from_model(tract.onnx().load_bytes(between(batch, nodes)))
    found = inferer.infer_many(range(500), {"obs": np.zeros((500, 6), np.float32)}).arrays["action"]
    # Of 500 numbers, means are off by 0.045 and deviations by 0.032: bounds are seven times as wide.
    assert float(np.abs(found.mean(axis=0)).max()) < 0.3
    assert float(np.abs(found.std(axis=0) - 1).max()) < 0.25
