"""Sizes that come up in the middle of a run: read from inputs, or told by the host, and what goes on natively then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from bodies import body, same
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import of_this_machine

from tract_core.data import Constant
from tract_core.dims import symbol
from tract_core.errors import RunError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis_dyn import DynMoveAxes
from tract_core.ops.binary import Add, Mul
from tract_core.ops.broadcast_dyn import DynBroadcast
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Exp, Neg
from tract_core.ops.fill import DynFill
from tract_core.ops.non_zero import NonZero
from tract_core.ops.one_hot import DynOneHot
from tract_core.ops.pad import DynPad, PadConstant, PadReflect
from tract_core.ops.range import Range
from tract_core.ops.reshape import DynReshape
from tract_core.ops.slice import DynSlice
from tract_core.ops.tile import DynTile
from tract_core.ops.topk import Topk
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import Array
from tract_core.runtime.parts import Part
from tract_core.runtime.plan import TypedSimplePlan

BEST = of_this_machine()[-1]
L, M = symbol("L"), symbol("M")


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype("f4")


def integers(*values: int) -> Array:
    return np.array(values, "i8")


def one(op, *facts: str) -> TypedModel:
    """An operator, and one behind it that computes with what it gives."""
    model, inputs = body({f"x{slot}": fact for slot, fact in enumerate(facts)})
    found, *others = model.wire_node("op", op, inputs)
    model.set_outputs([wire_one(model, "after", Neg(), found), *others])
    return model


def zero(kind: str = "f4") -> Constant:
    return Constant(np.zeros((), kind))


x = numbers(3, 4)
CASES = {
    "slice": (
        one(DynSlice(1, L), "N,4,f32", "i64", "i64"),
        [[x, np.array(a), np.array(b)] for a, b in ((1, 3), (4, 4), (0, 4))],
    ),
    "reshape": (one(DynReshape((L, M)), "N,4,f32", "2,i64"), [[x, integers(*to)] for to in ((2, 6), (-1, 3), (0, 4))]),
    "tile": (one(DynTile((L, M)), "N,4,f32", "2,i64"), [[x, integers(*by)] for by in ((2, 1), (0, 3), (1, 1))]),
    "broadcast": (
        one(DynBroadcast((M, L, 4)), "N,4,f32", "3,i64"),
        [[x[:1], integers(2, 3, 1)], [x, integers(1, 3, 4)]],
    ),
    "fill": (one(DynFill(zero(), (L, M)), "2,i64"), [[integers(2, 3)], [integers(0, 3)]]),
    "one hot": (
        one(DynOneHot(1, L, zero(), Constant(np.ones((), "f4"))), "N,i64", "i64"),
        [[integers(0, -1, 5), np.array(n)] for n in (4, 0, 9)],
    ),
    "pad": (
        one(DynPad(PadReflect(), (L, M)), "N,4,f32", "4,i64"),
        [[x, integers(*by)] for by in ((1, 2, 0, 3), (-1, 1, 0, -2), (0, 0, 0, 0))],
    ),
    "pad with a number": (
        one(DynPad(PadConstant(zero()), (L, M)), "N,4,f32", "4,i64", "f32"),
        [[x, integers(*by), np.array(7, "f4")] for by in ((1, 2, 0, 3), (-2, 0, -1, 0))],
    ),
    "move axes": (
        one(DynMoveAxes((L, M, 5)), "2,N,5,f32", "2,i64"),
        [[numbers(2, 3, 5), integers(*to)] for to in ((0, 2), (1, 2))],
    ),
    "range": (
        one(Range(L), "f32", "f32", "f32"),
        [[np.array(v, "f4") for v in bounds] for bounds in ((0, 5, 2), (3, 3, 1), (5, 0, -1))],
    ),
    "topk": (
        one(Topk(1, True, L), "N,400,f32", "i64"),
        [[numbers(2, 400), np.array(k)] for k in (0, 3, 256, 257, 400)],
    ),
}

REFUSED = {
    "slice": [x, np.array(1), np.array(5)],
    "reshape": [x, integers(5, 3)],
    "tile": [x, integers(-1, 3)],
    "broadcast": [x, integers(2, 2, 4)],
    "fill": [integers(2, -3)],
    "one hot": [integers(0), np.array(-1)],
    "pad": [x, integers(-2, 0, -2, 0)],
    "move axes": [numbers(2, 3, 5), integers(2, 2)],
    "range": [np.array(0, "f4"), np.array(5, "f4"), np.array(0, "f4")],
    "topk": [numbers(2, 400), np.array(401)],
}


def runs(model: TypedModel, inputs: Sequence[Sequence[Array]]) -> None:
    """Every turn of one state gives what the reference gives, whatever the sizes of the turn before."""
    state, wanted = CpuPlan(model, BEST).spawn(), TypedSimplePlan(model)
    for turn in [*inputs, *reversed(inputs)]:
        same(state.run(turn), wanted.run(turn))


@pytest.mark.parametrize("name", CASES)
def test_what_an_input_says_of_sizes_is_read_and_native_code_goes_on(name) -> None:
    model, inputs = CASES[name]
    assert all(placement.how != "numpy" for placement in CpuPlan(model, BEST).explain().placements)
    runs(model, inputs)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_as_by_the_reference(name) -> None:
    model, inputs = CASES[name]
    state, errors = CpuPlan(model, BEST).spawn(), list[str]()
    for run in (state.run, TypedSimplePlan(model).run):
        with pytest.raises(RunError) as caught:
            run(REFUSED[name])
        errors.append(f"{caught.value.problem} {caught.value.where}")
    assert errors[0] == errors[1]
    same(state.run(inputs[0]), TypedSimplePlan(model).run(inputs[0]))


def found_twice() -> TypedModel:
    """What is not zero, and of what is computed with that, what is not zero again."""
    model, (x, weight) = body({"x": "N,f32", "weight": "1,1,f32"})
    places = model.wire_node("places", NonZero(symbol("A")), [x])[0]
    first = wire_one(model, "first", Cast(model.outlet_fact(x).datum_type), places)
    shifted = wire_one(model, "shifted", Add(), first, model.add_const("less", np.array([[-2]], "f4")))
    weighted = wire_one(model, "weighted", Mul(), shifted, wire_one(model, "exp", Exp(), weight))
    again = model.wire_node("again", NonZero(symbol("B")), [weighted])[0]
    model.set_outputs([weighted, wire_one(model, "both", TypedConcat(1), again, again)])
    return model


@pytest.mark.parametrize("threads", [1, 2])
def test_sizes_may_come_up_several_times(threads, monkeypatch) -> None:
    monkeypatch.setattr("tract_cpu.binding.WORK_FOR_THREADS", 0)
    model = found_twice()
    plan, wanted = CpuPlan(model, BEST, threads), TypedSimplePlan(model)
    assert not [placement.ops for placement in plan.explain().placements if placement.how == "numpy"]
    state, w = plan.spawn(), np.zeros((1, 1), "f4")
    for count in (5, 5, 0, 1, 9, 2, 1000):
        x = np.arange(count) % 3
        inputs = [x.astype("f4"), w]
        outputs = wanted.run(inputs)
        same(state.run(inputs), outputs)
        given = [np.full_like(one, -1) for one in outputs]
        assert all(a is b for a, b in zip(state.run(inputs, given), given, strict=True))
        same(given, outputs)


def test_an_observer_sees_and_exchanges_what_comes_after() -> None:
    plan, inputs = CpuPlan(found_twice(), BEST), [np.array([1, 0, 1, 1], "f4"), np.zeros((1, 1), "f4")]
    seen: set[str] = set()

    def observe(part: Part, tensors: Mapping[OutletId, Array]) -> Mapping[OutletId, Array]:
        names = {outlet: plan.model.nodes[outlet.node].name for outlet in tensors}
        seen.update(names.values())
        return {outlet: np.zeros_like(array) for outlet, array in tensors.items() if names[outlet] == "weighted"}

    weighted, both = plan.spawn_observed(observe).run(inputs)
    assert {"places", "again", "weighted", "both"} <= seen
    assert not weighted.any()
    assert both.shape == (2, 0)
    assert {timing.part.nodes for timing in plan.timed_run(inputs)} == {
        one.part.nodes for one in plan.explain().placements
    }
