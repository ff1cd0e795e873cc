"""Models to transform."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.model import AxesMapping, TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.binary import Add, Mul
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Exp, Tanh
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.wiring import wire_reshape

WEIGHTS = np.array([[0.1, -0.2], [0.3, 0.4], [0.5, 1.6]])


@pytest.fixture
def network() -> Callable[..., TypedModel]:
    """A maker of models: ``x: B,S,3`` times weights, ``tanh``, ``exp``; named proj, act, out. Also gives ``act``."""

    def make(kind: DatumType = DatumType.F32) -> TypedModel:
        model = TypedModel()
        x = model.add_source("x", parse_typed_fact(f"B,S,3,{kind.short}", model.symbols))
        w = model.add_const("weights", WEIGHTS.astype(kind.numpy))
        (proj,) = model.wire_node("proj", EinSum(AxesMapping.parse("bsk,kn->bsn"), kind), [x, w])
        (act,) = model.wire_node("act", Tanh(), [proj])
        (out,) = model.wire_node("out", Exp(), [act])
        model.set_outputs([out, act])
        return model

    return make


@pytest.fixture
def flattening() -> Callable[[], TypedModel]:
    """A maker of models whose operators have symbols in their attributes: ``x: B,S,f32`` as ``B*S``, times 2."""

    def make() -> TypedModel:
        model = TypedModel()
        x = model.add_source("x", parse_typed_fact("B,S,f32", model.symbols))
        shape = model.outlet_fact(x).shape
        flat = wire_reshape(model, "flat", x, [shape[0] * shape[1]])
        two = model.add_const("two", np.array([2], np.float32))
        model.set_outputs(model.wire_node("doubled", Mul(), [flat, two]))
        return model

    return make


@pytest.fixture
def loop() -> Callable[[], TypedModel]:
    """A maker of models: running sums of ``x: T,B,f32`` along ``T``, from a state of zeros, times a half."""

    def make() -> TypedModel:
        body = TypedModel()
        state = body.add_source("state", parse_typed_fact("1,B,f32", body.symbols))
        item = body.add_source("item", parse_typed_fact("1,B,f32", body.symbols))
        half = body.add_const("half", np.array([[0.5]], np.float32))
        (total,) = body.wire_node("total", Add(), [state, item])
        (scaled,) = body.wire_node("scaled", Mul(), [total, half])
        body.set_outputs([total, scaled])
        model = TypedModel()
        x = model.add_source("x", parse_typed_fact("T,B,f32", model.symbols))
        start = model.add_source("start", parse_typed_fact("1,B,f32", model.symbols))
        scan = Scan(
            body,
            (StateInput(), ScannedInput(0)),
            (OutputMapping(state=True), OutputMapping(full=FullOutput(0, 0))),
        )
        model.set_outputs(model.wire_node("loop", scan, [start, x]))
        return model

    return make
