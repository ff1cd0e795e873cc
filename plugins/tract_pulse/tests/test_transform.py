"""The ways to ask for pulses, and what is said to who asks for what cannot be."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from stream_networks import network
from stream_runs import pulsed

import tract_core as tract
from tract_core.api.model import Model
from tract_core.errors import TractError, TransformError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Exp


def whole(fact: str = "1,2,S,f32") -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    model.set_outputs(model.wire_node("y", Exp(), [x]))
    return model


WAYS: list[Any] = [
    tract.Pulse(8, symbol="T"),
    tract.Pulse("8").symbol("T"),
    "pulse(pulse=8, symbol=T)",
    'pulse(pulse: "8", symbol: "T")',
    'pulse(pulse="T=8")',
    json.dumps({"name": "pulse", "pulse": "8", "symbol": "T"}),
    json.dumps({"name": "pulse", "pulse": 8, "symbol": "T"}),
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_there_are_many_ways_to_ask_for_the_same(way: Any) -> None:
    model = Model(whole("1,2,T,f32"))
    model.transform(way)
    assert str(model.input_fact(0)) == "1,2,8,f32"
    assert str(model.output_fact(0)) == "1,2,8,f32"


def test_the_symbol_is_s_unless_another_one_is_named() -> None:
    model = Model(whole())
    model.transform(tract.Pulse("2*P"))
    assert str(model.input_fact(0)) == "1,2,2*P,f32"


def test_what_was_pulsed_says_what_it_is_and_the_whole_model_stays_as_it_is() -> None:
    model = whole("1,2*S+1,3,f32")
    before = model.clone()
    properties = pulsed(model, 4).properties
    assert same_model(model, before, names=True)
    assert properties["pulse.delay"].tolist() == [0]
    assert properties["pulse.input_axes"].tolist() == properties["pulse.output_axes"].tolist() == [1]
    assert properties["pulse.input_lengths"].tolist() == properties["pulse.output_lengths"].tolist() == ["2*S+1"]
    assert properties["pulse.streaming_symbol"].tolist() == ["S"]
    assert properties["pulse.delay"].dtype == np.int64


REFUSED = [
    ("1,2,S,f32", {"pulse": 0}, "a pulse of 0 positions; wanted at least one"),
    ("1,2,S,f32", {"pulse": -3}, "a pulse of -3 positions; wanted at least one"),
    ("1,2,S,f32", {"pulse": "8", "symbol": "T"}, r"no input has a size with the symbol T; the inputs are x: 1,2,S,f32"),
    ("1,2,3,f32", {"pulse": "8"}, r"no input has a size with the symbol S; the inputs are x: 1,2,3,f32"),
    ("1,S,S,f32", {"pulse": "8"}, r"grows with S along axes \[1, 2\], it can come along one"),
    ("1,2,S,f32", {"pulse": "8 positions"}, "the pulse is '8 positions', which is no size"),
    ("1,2,S,f32", {"pulse": ""}, "the pulse is '', which is no size"),
    ("1,2,S,f32", {"pulse": True}, "pulse"),
    ("1,2,S,f32", {"pulse": 1.5}, "pulse"),
    ("1,2,S,f32", {"pulse": None}, "pulse"),
    ("1,2,S,f32", {}, "pulse"),
    ("1,2,S,f32", {"pulse": 8, "size": 3}, "size"),
]


@pytest.mark.parametrize(("fact", "parameters", "message"), REFUSED)
def test_what_cannot_be_is_refused(fact: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(TractError, match=message):
        Model(whole(fact)).transform(json.dumps({"name": "pulse", **parameters}))


def test_the_hint_names_the_symbols_that_there_are() -> None:
    with pytest.raises(TransformError) as one:
        pulsed(whole(), 8, "T")
    assert one.value.hint is not None
    assert "name S, as in --pulse S=8, or Pulse('8', symbol='S')" in one.value.hint
    with pytest.raises(TransformError) as two:
        pulsed(whole("B,2,N,f32"), 8)
    assert two.value.hint is not None
    assert "name one of B, N" in two.value.hint


def test_a_model_that_was_pulsed_is_not_pulsed_again() -> None:
    model = network(1).model.declutter()
    with pytest.raises(TransformError, match="the model takes pulses already"):
        pulsed(pulsed(model, 8), 2)
