"""Operators with models inside: what they compute is launched with the model around."""

from __future__ import annotations

import numpy as np
import pytest
from on_virtual import run

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scan import FullInput, FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.submodel import SubmodelOp

RNG = np.random.default_rng(4)


def source(model: TypedModel, name: str, fact: str) -> OutletId:
    return model.add_source(name, parse_typed_fact(fact, model.symbols))


def exchanging() -> TypedModel:
    """Two states change places; one of them grows by a slice times a weight."""
    body = TypedModel()
    x, weights, left, right = (
        source(body, name, fact)
        for name, fact in (("x", "B,2,3,f32"), ("w", "3,f32"), ("left", "B,3,f32"), ("right", "B,3,f32"))
    )
    (sums,) = body.wire_node("sums", Reduce((1,), Reducer.SUM), [x])
    (sums,) = body.wire_node("flat", RmAxis(1), [sums])
    (weights,) = body.wire_node("row", AddAxis(0), [weights])
    (part,) = body.wire_node("part", Mul(), [sums, weights])
    (grown,) = body.wire_node("grown", Add(), [left, part])
    body.set_outputs([right, grown, x])
    return body


@pytest.mark.parametrize("chunk", [2, -2])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_states_that_change_places(count: int, chunk: int) -> None:
    model = TypedModel()
    facts = (f"B,{2 * count},3,f32", "3,f32", "B,3,f32", "B,3,f32")
    inputs = [source(model, f"x{slot}", fact) for slot, fact in enumerate(facts)]
    op = Scan(
        exchanging(),
        (ScannedInput(1, chunk), FullInput(), StateInput(), StateInput()),
        (
            OutputMapping(state=True, last=0),
            OutputMapping(state=True, full=FullOutput(1, 1, -3), last=2),
            OutputMapping(full=FullOutput(3, 1, chunk)),
        ),
        reset_every_turn=True,
    )
    model.set_outputs(model.wire_node("loop", op, inputs))
    x, weights = RNG.standard_normal((4, 2 * count, 3)).astype("f4"), RNG.standard_normal(3).astype("f4")
    left, right = RNG.standard_normal((2, 4, 3)).astype("f4")
    found = run(model, x, weights, left, right)
    given = list[np.ndarray]()
    for iteration in range(count) if chunk > 0 else reversed(range(count)):
        grown = left + x[:, 2 * iteration : 2 * iteration + 2].sum(1) * weights
        left, right = right, grown
        given.append(grown)
    for one, wanted in zip(found, (left, np.concatenate(given[::-1], 1), right, x), strict=True):
        np.testing.assert_allclose(one, wanted, atol=1e-5)


def test_models_inside_of_models() -> None:
    inner, model = TypedModel(), TypedModel()
    a, b = (source(inner, name, "N,f32") for name in "ab")
    weights = inner.add_const("w", np.arange(3, dtype="f4"))
    (total,) = inner.wire_node("total", Add(), [a, b])
    inner.set_outputs([total, a, weights])
    x, y = (source(model, name, "S,f32") for name in "xy")
    model.set_outputs(model.wire_node("op", SubmodelOp(inner), [x, y]))
    one, other = np.arange(5, dtype="f4"), np.ones(5, "f4")
    found = run(model, one, other)
    for got, wanted in zip(found, (one + other, one, np.arange(3, dtype="f4")), strict=True):
        np.testing.assert_array_equal(got, wanted)
