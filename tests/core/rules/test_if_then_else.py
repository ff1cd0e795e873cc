from __future__ import annotations

import numpy as np
import pytest

from tract_core.errors import TractError
from tract_core.ops.elementwise import Exp, Neg, Tanh
from tract_core.ops.if_then_else_wiring import wire_if
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.rules import declutter
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.declutter import checked_declutter, operators, sources


@pytest.mark.parametrize(("condition", "wanted"), [(True, ["Exp", "Slice"]), (False, ["Neg"])])
def test_a_known_condition_leaves_one_branch(condition: bool, wanted: list[str]) -> None:
    model, (x,) = sources("B,6,f32")
    then, (a,) = sources("N,6,f32")
    then.set_outputs([wire_one(then, "half", Slice(1, 0, 3), wire_one(then, "exp", Exp(), a))])
    other, (b,) = sources("M,6,f32")
    other.set_outputs([wire_one(other, "neg", Neg(), b)])
    known = model.add_const("condition", np.array(condition))
    (result,) = wire_if(model, "branch", known, (then, [x]), (other, [x]))
    model.set_outputs([result])
    simple = checked_declutter(model, {"B": 2})
    assert sorted(operators(simple)) == sorted(wanted)
    assert simple.outlet_name(simple.outputs[0]) == "branch"
    assert simple.outlet_fact(simple.outputs[0]).shape[1] == (3 if condition else 6)


def test_the_size_of_the_branch_is_known_behind() -> None:
    model, (x,) = sources("B,6,f32")
    then, (a,) = sources("N,6,f32")
    then.set_outputs([wire_one(then, "half", Slice(1, 0, 3), a)])
    other, (b,) = sources("M,6,f32")
    other.set_outputs([b])
    (result,) = wire_if(model, "branch", model.add_const("c", np.array(True)), (then, [x]), (other, [x]))
    model.set_outputs([wire_one(model, "out", Tanh(), result)])
    simple = checked_declutter(model, {"B": 2})
    assert simple.outlet_fact(simple.outputs[0]).shape[1] == 3


@pytest.mark.parametrize("condition", [True, False])
def test_an_unknown_condition_keeps_both_in_normal_form(condition: bool) -> None:
    model, (c, x) = sources("bool", "B,6,f32")
    then, (a,) = sources("N,6,f32")
    then.set_outputs([wire_one(then, "twice", Neg(), wire_one(then, "neg", Neg(), wire_one(then, "exp", Exp(), a)))])
    other, (b,) = sources("M,6,f32")
    other.set_outputs([wire_one(other, "tanh", Tanh(), b)])
    model.set_outputs(wire_if(model, "branch", c, (then, [x]), (other, [x])))
    given = [np.array(condition), np.ones((2, 6), np.float32)]
    simple = checked_declutter(model, inputs=given)
    assert operators(simple) == ["IfThenElse"]
    op = simple.node_by_name("branch").op
    assert operators(op.then_branch.body) == ["Exp"]  # type: ignore[attr-defined]: it is an IfThenElse


def test_a_branch_that_cannot_run_says_so_when_it_is_taken() -> None:
    model, (x,) = sources("2,f32")
    then, (a,) = sources("N,f32")
    then.set_outputs([wire_one(then, "part", Slice(0, 0, 3), a)])
    other, (b,) = sources("M,f32")
    other.set_outputs([b])
    model.set_outputs(wire_if(model, "branch", model.add_const("c", np.array(True)), (then, [x]), (other, [x])))
    simple = declutter(model.clone())
    for one in (model, simple):
        with pytest.raises(TractError, match="3"):
            TypedSimplePlan(one).run([np.ones(2, np.float32)])
