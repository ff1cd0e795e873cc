"""Outputs keep their names and their number, whatever a stream makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from stream_runs import assert_streams, pulsed

from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.errors import TransformError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Tanh
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one, wire_reshape

LENGTH = symbol("S")


def test_outputs_that_differ_in_their_delays_have_their_own_names() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,2,S,f32", model.symbols))
    t = wire_one(model, "t", Tanh(), x)
    y = wire_one(model, "y", Slice(2, 2, LENGTH), t)
    z = wire_one(model, "z", Slice(2, 1, LENGTH - 1), x)
    model.set_outputs([t, y, z, x])
    signal = np.random.default_rng(0).normal(size=(1, 2, 11)).astype(np.float32)
    found = assert_streams(model.declutter(), 4, [signal])
    assert [found.outlet_name(outlet) for outlet in found.inputs] == ["x"]
    assert [found.outlet_name(outlet) for outlet in found.outputs] == ["t", "y", "z", "x"]
    assert found.properties["pulse.delay"].tolist() == [0, 2, 1, 0]


def test_a_body_that_computes_with_the_length_is_refused() -> None:
    """In a body, the symbol would be the size of a pulse."""
    body = TypedModel()
    x, state = (body.add_source(name, parse_typed_fact("1,1,S,f32", body.symbols)) for name in ("x", "state"))
    length = wire_one(body, "length", Cast(DatumType.F32), body.add_const("S", [LENGTH]))
    total = wire_one(body, "total", Add(), x, state)
    body.set_outputs([wire_one(body, "y", Mul(), total, wire_reshape(body, "cube", length, (1, 1, 1)))])
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,3,S,f32", model.symbols))
    start = model.add_source("start", parse_typed_fact("1,1,S,f32", model.symbols))
    loop = Scan(body, (ScannedInput(1), StateInput()), (OutputMapping(state=True, full=FullOutput(0, 1)),))
    model.set_outputs([wire_one(model, "loop", loop, x, start)])
    with pytest.raises(TransformError, match=r"node 'loop' \(Scan\) cannot be streamed: it needs the length S"):
        pulsed(model.declutter(), 4)
