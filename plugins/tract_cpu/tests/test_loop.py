"""Loops with a condition as native code: what is handed on, what is collected, and when they end."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from bodies import body, numbers, outcome, plan, same, same_outcome
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen

from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.binary import Add, Lt
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.loop import Loop, wire_loop
from tract_core.ops.range import Range
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.slice import DynSlice
from tract_core.ops.wiring import fresh_size, wire_one
from tract_core.runtime.plan import TypedSimplePlan


def growing(*, until: float | None, known: int | None = None) -> TypedModel:
    """a, b -> b, a + b + the number of the iteration, as long as the sum of b is below ``until``.

    Without an end, what b was is collected. ``known``: the number of iterations, where the model says it.
    """
    model = TypedModel()
    facts = {"limit": "i64", "begin": "bool", "a": "1,N,f32", "b": "1,N,f32"}
    limit, begin, *start = (
        model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in facts.items()
    )
    if known is not None:
        limit, begin = model.add_const("known", np.array(known)), model.add_const("true", np.array(True))

    def make(carried):
        inner, (number, a, b) = body({"number": "i64", "a": "1,N,f32", "b": "1,N,f32"})
        single = wire_one(inner, "real", Cast(DatumType.F32), number)
        for axis in (0, 1):
            single = wire_one(inner, f"axis{axis}", AddAxis(0), single)
        total = wire_one(inner, "total", Add(), wire_one(inner, "sum", Add(), a, b), single)
        goes_on = inner.add_const("goes_on", np.array(True))
        if until is not None:
            whole = wire_one(inner, "whole", Reduce((0, 1), Reducer.SUM), b)
            less = wire_one(inner, "less", Lt(), whole, inner.add_const("until", np.full((1, 1), until, "f4")))
            goes_on = wire_one(inner, "flat", RmAxis(0), wire_one(inner, "flatter", RmAxis(0), less))
        inner.set_outputs([goes_on, b, total, *([wire_one(inner, "out", RmAxis(0), b)] if until is None else [])])
        return inner, []

    model.set_outputs(wire_loop(model, "loop", limit, begin, start, make_body=make))
    return model


def by_hand(limit: int, begin: bool, a: np.ndarray, b: np.ndarray, until: float | None) -> list[np.ndarray]:
    seen, number = [], 0
    while begin and number < limit:
        seen.append(b[0])
        begin = until is None or b.sum() < until
        a, b = b, a + b + np.float32(number)
        number += 1
    return [a, b, np.array(seen, "f4").reshape(number, a.shape[1])][: 2 if until is not None else 3]


@pytest.mark.parametrize("size", [0, 1, 2, 17])
@pytest.mark.parametrize("limit", [-3, 0, 1, 2, 7])
@pytest.mark.parametrize("begin", [True, False])
def test_a_loop_goes_round_as_long_as_its_condition_holds(size, limit, begin) -> None:
    a, b = np.ones((1, size), "f4"), np.full((1, size), 0.5, "f4")
    state = plan(growing(until=20.0)).spawn()
    for _ in range(2):
        same(state.run([np.array(limit), np.array(begin), a, b]), by_hand(limit, begin, a, b, 20.0))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("limit", [0, 1, 6])
def test_a_known_number_of_iterations_collects(limit, threads, monkeypatch) -> None:
    monkeypatch.setattr("tract_cpu.binding.WORK_FOR_THREADS", 0)
    monkeypatch.setattr("tract_cpu.binding.WORK_TO_SHARE", 0)
    a, b = numbers(1, 5), numbers(1, 5)
    model = growing(until=None, known=limit)
    given = [np.array(99), np.array(False), a, b]
    same(plan(model, threads).spawn().run(given), by_hand(limit, True, a, b, None))


def test_loops_without_an_end_are_refused_as_by_the_reference() -> None:
    model = TypedModel()
    facts = {"limit": "i64", "begin": "bool", "a": "N,f32"}
    limit, begin, a = (model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in facts.items())

    def make(carried):
        inner, (_, a) = body({"number": "i64", "a": "N,f32"})
        inner.set_outputs([inner.add_const("true", np.array(True)), wire_one(inner, "twice", Add(), a, a)])
        return inner, []

    model.set_outputs(wire_loop(model, "loop", limit, begin, [a], make_body=make))
    state, reference, said = plan(model).spawn(), TypedSimplePlan(model).spawn(), []
    for one in (state, reference):
        with pytest.raises(RunError, match="its condition never becomes false") as caught:
            one.run([np.array(1 << 40), np.array(True), np.ones(3, "f4")])
        said.append(str(caught.value))
    assert said[0] == said[1]
    same(state.run([np.array(3), np.array(True), np.ones(3, "f4")]), [np.full(3, 8, "f4")])
    same(state.run([np.array(1 << 40), np.array(False), np.ones(3, "f4")]), [np.ones(3, "f4")])


def test_values_of_the_last_iteration_alone() -> None:
    """The value that the body gives has another rank than at first: without iterations, the loop is refused."""
    model = TypedModel()
    facts = {"limit": "i64", "begin": "bool", "a": "N,f32", "seen": "f32"}
    limit, begin, *start = (model.add_source(n, parse_typed_fact(fact, model.symbols)) for n, fact in facts.items())

    def make(carried):
        inner, (_, a, _) = body({"number": "i64", "a": "N,f32", "seen": str(carried[1])})
        total = wire_one(inner, "total", Reduce((0,), Reducer.SUM), a)
        goes_on = wire_one(inner, "goes_on", Lt(), total, inner.add_const("end", np.full(1, 99, "f4")))
        twice = wire_one(inner, "twice", Add(), a, a)
        inner.set_outputs([wire_one(inner, "single", RmAxis(0), goes_on), twice, a])
        return inner, []

    found = wire_loop(model, "loop", limit, begin, start, make_body=make, untaken={1})
    model.set_outputs([one for one in found if one is not None])
    state, reference = plan(model).spawn(), TypedSimplePlan(model).spawn()
    for times in (1, 3, 90):
        given = [np.array(times), np.array(True), np.ones(3, "f4"), np.array(0, "f4")]
        same(state.run(given), reference.run(given))
    said = []
    for one in (state, reference):
        for nothing in ([np.array(0), np.array(True)], [np.array(4), np.array(False)]):
            with pytest.raises(RunError, match="the loop makes no iteration") as caught:
                one.run([*nothing, np.ones(3, "f4"), np.array(0, "f4")])
            said.append(str(caught.value))
    assert len(set(said)) == 1


def writing() -> TypedModel:
    """In every iteration: x[i : i + step] doubled, in its place, as exporters write it."""
    model = TypedModel()
    facts = {"limit": "i64", "begin": "bool", "x": "N,3,f32", "step": "i64"}
    limit, begin, x, step = (
        model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in facts.items()
    )

    def make(carried):
        inner, (number, data, more) = body({"number": "i64", "x": "N,3,f32", "step": "i64"})
        end, one = wire_one(inner, "end", Add(), number, more), inner.add_const("one", np.array(1))
        places = wire_one(inner, "places", Range(fresh_size(inner, "counted")), number, end, one)
        for name, op in (
            ("flat", AddAxis(1)),
            ("stretched", MultiBroadcastTo((inner.outlet_fact(places).shape[0], 3))),
        ):
            places = wire_one(inner, name, op, places)
        part = wire_one(inner, "part", DynSlice(0, fresh_size(inner, "cut")), data, number, end)
        twice = wire_one(inner, "twice", Add(), part, part)
        new = wire_one(inner, "new", ScatterElements(0), data, places, twice)
        inner.set_outputs([inner.add_const("goes_on", np.array(True)), new])
        return inner, [step]

    model.set_outputs(wire_loop(model, "loop", limit, begin, [x], make_body=make))
    return model


@pytest.mark.parametrize(("limit", "step"), [(0, 1), (3, 1), (3, 2), (3, 0), (3, -1), (4, 1), (5, 1), (4, 2), (9, 1)])
def test_a_size_of_each_iteration_is_supposed_to_be_1(limit, step, monkeypatch) -> None:
    inputs = [np.array(limit), np.array(True), numbers(4, 3), np.array(step)]
    compiled = plan(writing())
    if step == 1 and limit <= 4:
        monkeypatch.setattr(CpuPlan, "bodies", None)  # who runs the body where a kernel refuses
    wanted, found = (partial(one.spawn().run, inputs) for one in (TypedSimplePlan(writing()), compiled))
    same_outcome(outcome(found, RunError), outcome(wanted, RunError))


def test_values_that_grow_are_left_to_the_host() -> None:
    model = TypedModel()
    limit, begin = model.add_const("limit", np.array(3)), model.add_const("begin", np.array(True))
    a = model.add_source("a", parse_typed_fact("N,f32", model.symbols))

    def make(carried):
        inner = TypedModel()
        inner.add_source("number", parse_typed_fact("i64", inner.symbols))
        a = inner.add_source("a", carried[0].with_shape([symbol("Own")]))
        inner.set_outputs([inner.add_const("true", np.array(True)), wire_one(inner, "both", TypedConcat(0), a, a)])
        return inner, []

    model.set_outputs(wire_loop(model, "loop", limit, begin, [a], make_body=make))
    found = CpuPlan(model, chosen(""))
    assert found.explain().placements[0].how == "state"
    same(found.spawn().run([np.ones(2, "f4")]), [np.ones(16, "f4")])


@pytest.mark.parametrize("limit", [0, 1, 3, 5, 7, 1 << 9, 1 << 62, -1])
@pytest.mark.parametrize("begin", [True, False])
def test_a_loop_that_goes_round_more_or_less_often_than_announced_is_the_error_of_the_reference(limit, begin) -> None:
    """There is memory for as many iterations as were announced, as a file can say of any output."""
    model = TypedModel()
    facts = {"limit": "i64", "begin": "bool", "a": "3,f32"}
    inputs = [model.add_source(name, parse_typed_fact(fact)) for name, fact in facts.items()]
    inner, (_, a) = body({"number": "i64", "a": "3,f32"})
    twice = wire_one(inner, "twice", Add(), a, a)
    inner.set_outputs([inner.add_const("true", np.array(True)), twice, twice])
    model.set_outputs(model.wire_node("loop", Loop(inner, 1, 5, ((3,), (5, 3))), inputs))
    given, found = [np.array(limit), np.array(begin), np.ones(3, "f4")], list[object]()
    for one in (plan(model), TypedSimplePlan(model)):
        try:
            found.append([array.tolist() for array in one.spawn().run(given)])
        except RunError as error:
            found.append(str(error))
    assert found[0] == found[1]
    assert isinstance(found[0], list) == (limit == 5 and begin)
