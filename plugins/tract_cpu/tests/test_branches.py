"""Branches and models in models as native code: only what is chosen counts, at any depth."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from bodies import around, body, numbers, outcome, picking, plan, same, same_outcome, sums
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen

from tract_core.data import DatumType
from tract_core.errors import RunError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.binary import Add, Gt, Mul
from tract_core.ops.check import Refuse
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Neg
from tract_core.ops.if_then_else_wiring import wire_if
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.slice import Slice
from tract_core.ops.submodel import SubmodelOp
from tract_core.ops.wiring import wire_one
from tract_core.runtime.plan import TypedSimplePlan


def choosing(shape: str = "A,B,f32") -> TypedModel:
    """By a condition: x + y and x twice, or -y and a product."""
    model = TypedModel()
    facts = [parse_typed_fact(fact, model.symbols) for fact in ("bool", shape, shape)]
    condition, x, y = (model.add_source(name, fact) for name, fact in zip("cxy", facts, strict=True))
    then, (a, b) = body({"a": shape, "b": shape})
    then.set_outputs([wire_one(then, "sum", Add(), a, b), wire_one(then, "twice", Add(), a, a)])
    other, (b, a) = body({"b": shape, "a": shape})
    other.set_outputs([wire_one(other, "less", Neg(), b), wire_one(other, "product", Mul(), a, b)])
    found = wire_if(model, "choice", condition, (then, [x, y]), (other, [y, x]))
    model.set_outputs([wire_one(model, "behind", Add(), found[0], x), found[1]])
    return model


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (2, 3), (7, 33)])
@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_branch_that_is_chosen_gives_the_outputs(shape, condition, threads, monkeypatch) -> None:
    monkeypatch.setattr("tract_cpu.binding.WORK_FOR_THREADS", 0)
    x, y = numbers(*shape), numbers(*shape) * 2
    wanted = [x + y + x, x + x] if condition else [x - y, x * y]
    for model in (choosing(), choosing(f"{shape[0]},{shape[1]},f32")):
        state = plan(model, threads).spawn()
        for _ in range(2):
            same(state.run([np.array(condition), x, y]), wanted)
        found = state.run([np.array(not condition), x, y])
        same(found, TypedSimplePlan(model).run([np.array(not condition), x, y]))


def test_branches_of_different_sizes_are_left_to_the_host() -> None:
    model = TypedModel()
    condition, x = (
        model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in [("c", "bool"), ("x", "A,f32")]
    )
    then, (a,) = body({"a": "A,f32"})
    then.set_outputs([wire_one(then, "part", Slice(0, 0, 1), a)])
    other, (a,) = body({"a": "A,f32"})
    other.set_outputs([wire_one(other, "less", Neg(), a)])
    model.set_outputs(wire_if(model, "choice", condition, (then, [x]), (other, [x])))
    found = CpuPlan(model, chosen(""))
    assert found.explain().placements[0].why == "sizes are only known in the middle of the run"
    for given in (True, False):
        same(found.spawn().run([np.array(given), numbers(4)]), [numbers(4)[:1] if given else -numbers(4)])


def looping() -> TypedModel:
    """A loop whose state grows by the slice where that is above the state, else shrinks; in a branch."""
    inner, (x, s) = body({"x": "1,1,f32", "s": "1,1,f32"})
    flat = wire_one(inner, "flat", Reduce((0, 1), Reducer.SUM), x)
    above = wire_one(inner, "above", Gt(), flat, s)
    then, (a, b) = body({"a": "1,1,f32", "b": "1,1,f32"})
    then.set_outputs([wire_one(then, "sum", Add(), a, b)])
    other, (a, b) = body({"a": "1,1,f32", "b": "1,1,f32"})
    other.set_outputs([wire_one(other, "product", Mul(), a, b)])
    (new,) = wire_if(inner, "choice", above, (then, [s, x]), (other, [s, x]))
    inner.set_outputs([new])
    op = Scan(
        inner,
        (ScannedInput(0), StateInput()),
        (OutputMapping(state=True, full=FullOutput(0, 0), last=1),),
        reset_every_turn=True,
    )
    model = TypedModel()
    facts = {"c": "bool", "x": "T,1,f32", "s": "1,1,f32"}
    c, x, s = (model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in facts.items())
    then, given = body({"x": "T,1,f32", "s": "1,1,f32"})
    then.set_outputs(then.wire_node("loop", op, given))
    other, (a, b) = body({"x": "T,1,f32", "s": "1,1,f32"})
    other.set_outputs([wire_one(other, "less", Neg(), a), b])
    model.set_outputs(wire_if(model, "outer", c, (then, [x, s]), (other, [x, s])))
    return model


@pytest.mark.parametrize("length", [0, 1, 2, 9])
@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_branches_in_loops_in_branches(length, condition, threads, monkeypatch) -> None:
    monkeypatch.setattr("tract_cpu.binding.WORK_FOR_THREADS", 0)
    monkeypatch.setattr("tract_cpu.binding.WORK_TO_SHARE", 0 if threads == 2 else 1 << 20)
    inputs = [np.array(condition), numbers(length, 1), np.full((1, 1), 0.1, "f4")]
    wanted = TypedSimplePlan(looping()).run(inputs)
    compiled = plan(looping(), threads)
    state = compiled.spawn()
    for _ in range(2):
        same(state.run(inputs), wanted)
    same(compiled.spawn_observed(lambda *_: None).run(inputs), wanted)
    paths = {timing.part.body for timing in compiled.timed_run(inputs)}
    assert len(max(paths, key=len)) == (3 if condition and length else 1)


def test_every_node_of_every_body_is_explained() -> None:
    placed = {one.names: one.how for one in plan(looping()).explain().placements}
    assert placed[("outer",)] == "branch"
    assert placed[("outer[0]/loop",)] == "loop"
    assert placed[("outer[0]/loop/choice",)] == "branch"
    assert placed[("outer[0]/loop/choice[1]/product",)] == "map"
    assert placed[("outer[1]/less",)] == "map"


def test_a_model_in_a_model_is_part_of_it() -> None:
    inner, (a, b) = body({"a": "N,K,f32", "b": "K,M,f32"})
    product = wire_one(inner, "product", EinSum(AxesMapping.parse("nk,km->nm"), DatumType.F32), a, b)
    inner.set_outputs([wire_one(inner, "less", Neg(), product), a])
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("N,3,f32", model.symbols))
    w = model.add_const("w", numbers(3, 3))
    first = model.wire_node("first", SubmodelOp(inner), [x, w])
    second = model.wire_node("second", SubmodelOp(inner), [first[0], w])
    model.set_outputs([*second, first[1]])
    for count in (0, 1, 5):
        x = numbers(count, 3)
        once = -(x @ numbers(3, 3))
        same(plan(model).spawn().run([x]), [-(once @ numbers(3, 3)), once, x])


@pytest.mark.parametrize("count", [3, 4])
def test_a_refusal_in_a_branch_counts_where_it_is_taken(count) -> None:
    model = TypedModel()
    facts = {"c": "bool", "places": "T,i64", "s": "1,3,f32", "table": "4,3,f32"}
    c, *given = (model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in facts.items())
    then = picking()
    loop = then.producer(then.outputs[0])
    forgetful = TypedModel()
    sources = [forgetful.add_source(name, parse_typed_fact(facts[name], forgetful.symbols)) for name in list(facts)[1:]]
    forgetful.set_outputs(forgetful.wire_node("loop", replace(loop.op, reset_every_turn=True), sources)[1:])
    other, (a,) = body({"s": "1,3,f32"})
    other.set_outputs([wire_one(other, "less", Neg(), a)])
    model.set_outputs(wire_if(model, "choice", c, (forgetful, given), (other, given[1:2])))
    inputs = [np.array([0, count]), numbers(1, 3), numbers(4, 3)]
    state = plan(model).spawn()
    same(state.run([np.array(False), *inputs]), [-inputs[1]])
    if count == 4:
        said = []
        for one in (state, TypedSimplePlan(model).spawn()):
            with pytest.raises(RunError) as caught:
                one.run([np.array(True), *inputs])
            said.append(str(caught.value))
        assert said[0] == said[1]
    inputs[0][1] = 3
    same(state.run([np.array(True), *inputs]), TypedSimplePlan(model).run([np.array(True), *inputs]))


def test_what_a_loop_in_a_model_keeps_is_left_to_the_host() -> None:
    inner = around(sums(0), {"x": "T,N,f32", "s": "1,N,f32", "w": "1,1,f32"})
    model, inputs = body({"x": "T,N,f32", "s": "1,N,f32", "w": "1,1,f32"})
    model.set_outputs(model.wire_node("inner", SubmodelOp(inner), inputs))
    found = CpuPlan(model, chosen(""))
    assert "between turns" in found.explain().placements[0].why
    state, reference = found.spawn(), TypedSimplePlan(model).spawn()
    for length in (3, 1, 4):
        given = [numbers(length, 3), np.ones((1, 3), "f4"), np.full((1, 1), 0.5, "f4")]
        same(state.run(given), reference.run(given))


def wanting() -> TypedModel:
    """By a condition: a sum of parts that are two columns shorter than what may have none; or of the only row.

    That is done in a branch inside, and the other one there refuses.
    """
    model = TypedModel()
    facts = {"c": "bool", "d": "bool", "x": "A,B,f32"}
    c, d, x = (model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in facts.items())
    then, (a,) = body({"x": "A,B,f32"})
    ends = [wire_one(then, f"part{place}", Slice(1, place, then.symbols.parse("B") - 2 + place), a) for place in (0, 2)]
    then.set_outputs([wire_one(then, "sum", Reduce((0, 1), Reducer.SUM), wire_one(then, "both", Add(), *ends))])
    squeezing, (a,) = body({"x": "A,B,f32"})
    row = wire_one(squeezing, "squeezed", RmAxis(0), a)
    total = wire_one(squeezing, "total", Reduce((0,), Reducer.SUM), row)
    squeezing.set_outputs([wire_one(squeezing, "again", AddAxis(0), total)])
    refusing = TypedModel()
    fact = parse_typed_fact("1,1,f32", refusing.symbols)
    refusing.set_outputs(refusing.wire_node("never", Refuse("nothing is here", "ask for the other", (fact,)), []))
    other, (inner, a) = body({"d": "bool", "x": "A,B,f32"})
    other.set_outputs(wire_if(other, "inner", inner, (squeezing, [a]), (refusing, [])))
    model.set_outputs(wire_if(model, "choice", c, (then, [x]), (other, [d, x])))
    return model


@pytest.mark.parametrize("shape", [(1, 5), (1, 0), (1, 1), (3, 4), (0, 2)])
@pytest.mark.parametrize("choices", [(True, True), (False, True), (False, False)])
def test_what_a_branch_wants_of_sizes_counts_where_it_is_taken(shape, choices) -> None:
    inputs = [*map(np.array, choices), numbers(*shape)]
    wanted, found = (partial(one.spawn().run, inputs) for one in (TypedSimplePlan(wanting()), plan(wanting())))
    same_outcome(outcome(found), outcome(wanted))
