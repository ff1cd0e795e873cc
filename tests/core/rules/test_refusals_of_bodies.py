"""What a loop or a branch refuses, it refuses too where only sizes, or other outputs, are read of what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.errors import TractError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.check import Refuse
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Neg
from tract_core.ops.gather import Gather
from tract_core.ops.if_then_else_wiring import wire_if
from tract_core.ops.loop import wire_loop
from tract_core.ops.scan import FullInput, FullOutput, OutputMapping, Scan, ScannedInput
from tract_core.ops.submodel import SubmodelOp
from tract_core.ops.wiring import wire_one
from tract_core.rules import declutter
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.declutter import same_outputs, sources

FACTS = ("2,S,f32", "K,3,f32", "bool")
"""Two factors, of which S and K must be equal, and whether a run is fine."""

Inside = Callable[[TypedModel, Sequence[OutletId]], OutletId]
Outside = Callable[[TypedModel, Sequence[OutletId], Inside], OutletId]


def _product(body: TypedModel, given: Sequence[OutletId]) -> OutletId:
    mapping = AxesMapping.parse("mk,kn->mn")
    return wire_one(body, "product", EinSum(mapping, DatumType.F32), *given[:2])


def _refusal(body: TypedModel, given: Sequence[OutletId]) -> OutletId:
    """A branch that refuses, where the run is not fine."""
    other = body.empty_like()
    nothing = Refuse("the branch cannot run", "take the other one", (TypedFact.of(DatumType.F32, (2, 3)),))
    other.set_outputs(other.wire_node("nothing", nothing, []))
    fine = body.empty_like()
    fine.set_outputs([fine.add_const("fine", np.zeros((2, 3), np.float32))])
    return wire_if(body, "inner", given[2], (fine, []), (other, []))[0]


def _body(model: TypedModel, given: Sequence[OutletId], inside: Inside, *more: str) -> TypedModel:
    body = model.empty_like()
    body_inputs = [body.add_source(name, TypedFact.of(DatumType.I64, ())) for name in more]
    given = [body.add_source(f"y{slot}", model.outlet_fact(outlet)) for slot, outlet in enumerate(given)]
    assert len(body.inputs) == len(body_inputs) + len(given)
    body.set_outputs([inside(body, given)])
    return body


def _submodel(model: TypedModel, given: Sequence[OutletId], inside: Inside) -> OutletId:
    return wire_one(model, "outer", SubmodelOp(_body(model, given, inside)), *given)


def _branch(model: TypedModel, given: Sequence[OutletId], inside: Inside) -> OutletId:
    body, other = (_body(model, given, inside) for _ in range(2))
    return wire_if(model, "outer", given[2], (body, list(given)), (other, list(given)))[0]


def _scan(model: TypedModel, given: Sequence[OutletId], inside: Inside) -> OutletId:
    body = _body(model, given, inside)
    body.add_source("piece", TypedFact.of(DatumType.F32, (1,)))
    steps = model.add_const("steps", np.zeros(3, np.float32))
    inputs = (*[FullInput()] * len(given), ScannedInput(0))
    return wire_one(model, "outer", Scan(body, inputs, (OutputMapping(full=FullOutput(0, 0, 2)),)), *given, steps)


def _loop(model: TypedModel, given: Sequence[OutletId], inside: Inside) -> OutletId:
    def make(_: Sequence[TypedFact]) -> tuple[TypedModel, Sequence[OutletId]]:
        body = _body(model, given, inside, "i")
        body.set_outputs([body.add_const("again", np.array(True)), *body.outputs])
        return body, given

    begin = model.add_const("times", np.array(2)), model.add_const("begin", np.array(True))
    (found,) = wire_loop(model, "outer", *begin, [], make_body=make)
    assert found is not None
    return found


@pytest.mark.parametrize("shape_only", [False, True])
@pytest.mark.parametrize("outside", [_submodel, _branch, _scan, _loop])
@pytest.mark.parametrize("inside", [_product, _refusal])
def test_who_reads_only_sizes_relies_on_what_bodies_want(inside: Inside, outside: Outside, shape_only: bool) -> None:
    model, given = sources(*FACTS)
    y = outside(model, given, inside)
    model.set_outputs([model.add_const("shape", model.outlet_fact(y).shape) if shape_only else y])
    simple = declutter(model.clone(), check=True)
    good: list[Any] = [np.ones((2, 4), np.float32), np.ones((4, 3), np.float32), np.array(True)]
    same_outputs(simple, model, good)
    bad = [good[0][:, :1], *good[1:]] if inside is _product else [*good[:2], np.array(False)]
    message = "size S must be K; S is 1 and K is 4" if inside is _product else "the branch cannot run"
    for one in (model, simple):
        with pytest.raises(TractError, match=message):
            TypedSimplePlan(one).run(bad)


@pytest.mark.parametrize("handed_on", [False, True])
def test_positions_are_judged_in_a_loop_that_nobody_asks_for_what_is_there(handed_on: bool) -> None:
    """A loop gives the slices of x, or with the other sign, and what stands in a table at places of the run."""
    model, (x, places) = sources("T,f32", "T,i64")
    body, (piece, place) = sources("1,f32", "1,i64")
    table = body.add_const("table", np.zeros(3, np.float32))
    picked = wire_one(body, "picked", Gather(0), table, place)
    body.set_outputs([piece if handed_on else wire_one(body, "neg", Neg(), piece), picked])
    outputs = tuple(OutputMapping(full=FullOutput(slot, 0)) for slot in range(2))
    found = model.wire_node("loop", Scan(body, (ScannedInput(0), ScannedInput(0)), outputs), [x, places])
    model.set_outputs(found[:1])
    simple = declutter(model.clone(), check=True)
    given = np.array([1, 2], np.float32)
    same_outputs(simple, model, [given, np.array([2, -3])])
    for one in (model, simple):
        with pytest.raises(TractError, match="index 3 is outside"):
            TypedSimplePlan(one).run([given, np.array([0, 3])])


def test_positions_are_judged_in_one_iteration() -> None:
    model, (x, places) = sources("1,f32", "1,i64")
    body, (piece, place) = sources("1,f32", "1,i64")
    table = body.add_const("table", np.zeros(3, np.float32))
    body.set_outputs([wire_one(body, "neg", Neg(), piece), wire_one(body, "picked", Gather(0), table, place)])
    outputs = tuple(OutputMapping(full=FullOutput(slot, 0)) for slot in range(2))
    found = model.wire_node("loop", Scan(body, (ScannedInput(0), ScannedInput(0)), outputs), [x, places])
    model.set_outputs(found[:1])
    simple = declutter(model.clone(), check=True)
    for one in (model, simple):
        with pytest.raises(TractError, match="index 3 is outside"):
            TypedSimplePlan(one).run([np.ones(1, np.float32), np.array([3])])
