"""Models on MLX's CPU build, beside what the node executor gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from tract_metal.device import MetalDevice
from tract_metal.plan import MetalPlan

import tract_core as tract
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.runtime.plan import TypedSimplePlan

CPU = MetalDevice.named("cpu")


def model_of(op: TypedOp, *facts: str, constants: Mapping[int, np.ndarray] | None = None) -> TypedModel:
    """A model of one operator. ``constants``: inputs that are part of it."""
    model, known = TypedModel(), constants or {}
    outlets = [
        model.add_const(f"c{slot}", known[slot])
        if slot in known
        else model.add_source(f"x{slot}", parse_typed_fact(fact, model.symbols))
        for slot, fact in enumerate(facts)
    ]
    model.set_outputs(model.wire_node("op", op, outlets))
    return model


def parsed(graph: str) -> TypedModel:
    """A model of ONNX's text, in normal form."""
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> graph {graph}')
    model = tract.onnx().load_bytes(proto.SerializeToString()).into_model().typed
    model.declutter()
    return model


def plan_of(model: TypedModel, *, all_of_it: bool = True) -> MetalPlan:
    """``all_of_it``: whether no node may be left to the host."""
    plan = MetalPlan(model, CPU)
    assert not all_of_it or not plan.hosted
    return plan


def run(model: TypedModel, *inputs: Any) -> list[np.ndarray]:
    """The outputs, the same in a second turn."""
    state = plan_of(model).spawn()
    arrays = [np.asarray(one) for one in inputs]
    first, second = state.run(arrays), state.run(arrays)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))
    return first


def wanted(model: TypedModel, inputs: Sequence[Any]) -> list[np.ndarray]:
    """What the node executor gives."""
    return TypedSimplePlan(model).run([np.asarray(one) for one in inputs])
