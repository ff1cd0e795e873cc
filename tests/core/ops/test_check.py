"""A shape that was said of a tensor is checked in every run, also where nothing reads the tensor."""

from __future__ import annotations

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.errors import FactError, RunError, TractError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.ops.check import CheckShape
from tract_core.ops.elementwise import Neg
from tract_core.ops.non_zero import NonZero
from tract_core.plugins.keys import AXES
from tract_core.rules import declutter
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.declutter import operators, sources
from tract_core.transforms.select import SelectInputs, SelectOutputs
from tract_core.transforms.set_symbols import SetSymbols

WHY = ("somebody says so", "ask somebody")


def counted() -> TypedModel:
    """How many elements of ``x`` are not zero, which is said to be 3; nothing but their number is an output."""
    model, (x,) = sources("N,f32")
    (found,) = model.wire_node("found", NonZero(model.symbols.new_symbol("count")), [x])
    (checked,) = model.wire_node("checked", CheckShape((None, 3), *WHY), [found])
    (other,) = model.wire_node("other", Neg(), [checked])
    model.set_outputs([model.add_const("number", list(model.outlet_fact(other).shape)), x])
    return model


def test_it_runs_where_nothing_reads_it() -> None:
    for model in (counted(), declutter(counted())):
        plan = TypedSimplePlan(model)
        assert plan.run([np.array([1, 0, 1, 1], np.float32)])[0].tolist() == [1, 3]
        with pytest.raises(
            RunError, match=r"node 'checked' \(CheckShape\): its shape is \[1, 2\], .* \[_,3\]: somebody"
        ):
            plan.run([np.array([1, 0, 1, 0], np.float32)])


def test_what_surely_holds_is_not_checked() -> None:
    model, (x,) = sources("2,S,f32")
    model.set_outputs(model.wire_node("y", CheckShape((2, symbol("S")), *WHY), [x]))
    model.set_outputs(model.wire_node("z", Neg(), model.outputs))
    assert operators(declutter(model)) == ["Neg"]


def test_symbols_that_get_values_settle_it() -> None:
    model, (x,) = sources("S,f32")
    checked = model.wire_node("y", CheckShape((3,), *WHY), [x])
    model.set_outputs(model.wire_node("z", Neg(), checked))
    assert str(model.outlet_fact(checked[0])) == "3,f32"
    assert operators(declutter(SetSymbols({"S": 3}).apply(model))) == ["Neg"]
    wrong = declutter(SetSymbols({"S": 4}).apply(model))
    assert "CheckShape" in operators(wrong)
    with pytest.raises(TractError, match=r"its shape is \[4\], it should be \[3\]"):
        TypedSimplePlan(wrong).run([np.zeros(4, np.float32)])


def test_a_rank_that_cannot_be() -> None:
    model, (x,) = sources("2,f32")
    with pytest.raises(FactError, match="2,f32 has 1 axes, 2 are wanted"):
        model.wire_node("y", CheckShape((2, None), *WHY), [x])


def test_an_axis_that_is_checked_cannot_be_cut() -> None:
    model, (x,) = sources("N,S,f32")
    op = CheckShape((None, 3), *WHY)
    facts: list[TypedFact] = [model.outlet_fact(x)]
    mapping: AxesMapping = model.registry[AXES][CheckShape](op, facts, op.output_facts(facts))
    assert mapping.inputs[0][0] == mapping.outputs[0][0]
    assert mapping.inputs[0][1] != mapping.outputs[0][1]


def test_a_model_that_is_cut_behind_it_does_not_need_it() -> None:
    model, (x,) = sources("N,f32")
    (found,) = model.wire_node("found", NonZero(model.symbols.new_symbol("count")), [x])
    checked = model.wire_node("checked", CheckShape((None, 3), *WHY), [found])
    (late,) = model.wire_node("late", Neg(), checked)
    model.set_outputs(model.wire_node("y", Neg(), [late]))
    cut = SelectInputs(["late"]).apply(model)
    assert [cut.outlet_name(outlet) for outlet in cut.inputs] == ["late"]
    assert "CheckShape" not in operators(cut)
    assert "CheckShape" in operators(SelectOutputs(["late"]).apply(model))
