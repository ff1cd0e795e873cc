"""Which models keep something from turn to turn: as their states do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tract_core import Model, runtime_for_name
from tract_core.model.bodies import keeps_state
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.if_then_else import Branch, IfThenElse
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.submodel import SubmodelOp
from tract_core.ops.wiring import wire_one


def body_of_sums() -> TypedModel:
    body = TypedModel()
    x, total = (body.add_source(name, parse_typed_fact("1,f32", body.symbols)) for name in ("x", "total"))
    both = wire_one(body, "both", Add(), x, total)
    body.set_outputs([both])
    return body


def sums(**options: Any) -> Scan:
    """Running sums of the positions of the first input; the second one is the sum at the start."""
    mapping = OutputMapping(state=True, full=FullOutput(0, 0))
    return Scan(body_of_sums(), (ScannedInput(0), StateInput()), (mapping,), **options)


def around(op: TypedOp, facts: Sequence[str]) -> TypedModel:
    model = TypedModel()
    inputs = [model.add_source(f"in{n}", parse_typed_fact(fact, model.symbols)) for n, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("node", op, inputs))
    return model


LOOP = ("3,f32", "1,f32")
OPTIONS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"reset_every_turn": True}, False),
    ({"external_state": True}, False),
    ({"external_state": True, "skip": 2}, True),
    ({"reset_every_turn": True, "skip": 2}, False),
]


def inputs_of(model: TypedModel) -> list[Any]:
    facts = [model.outlet_fact(outlet) for outlet in model.inputs]
    return [np.ones([int(size) for size in fact.shape], fact.datum_type.numpy) for fact in facts]


def differs(model: TypedModel) -> bool:
    """Whether the second turn of a state gives something else than the first one."""
    state = runtime_for_name("reference").prepare(Model(model.clone())).spawn_state()
    first, second = ([np.array(one) for one in state.run(inputs_of(model))] for _ in range(2))
    return any(not np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(("options", "keeps"), OPTIONS)
def test_loops(options: dict[str, Any], keeps: bool) -> None:
    model = around(sums(**options), LOOP)
    assert keeps_state(model) is keeps is differs(model)


@pytest.mark.parametrize(("options", "keeps"), OPTIONS)
def test_what_runs_models_keeps_what_they_keep(options: dict[str, Any], keeps: bool) -> None:
    inner = around(sums(**options), LOOP)
    model = around(SubmodelOp(inner), LOOP)
    assert keeps_state(model) is keeps is differs(model)


def test_one_branch_is_enough() -> None:
    plain = around(replace(sums(), reset_every_turn=True), LOOP)
    for then, other, keeps in ((plain, plain, False), (around(sums(), LOOP), plain, True)):
        op = IfThenElse(Branch(then, (1, 2)), Branch(other, (1, 2)), ((3,),))
        model = around(op, ("bool", *LOOP))
        assert keeps_state(model) is keeps is differs(model)


def test_a_model_without_nodes_keeps_nothing() -> None:
    assert not keeps_state(TypedModel())
