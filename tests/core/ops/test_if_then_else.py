from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.errors import FactError, RunError
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import if_then_else
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Abs, Exp, Neg
from tract_core.ops.if_then_else import Branch, IfThenElse
from tract_core.ops.if_then_else_wiring import wire_if
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.wiring import wire_one
from tract_core.runtime.plan import TypedSimplePlan


def fact(text: str, model: TypedModel | None = None) -> TypedFact:
    return parse_typed_fact(text, None if model is None else model.symbols)


def branch_model(model: TypedModel, op: TypedOp, *facts: str) -> TypedModel:
    body = model.empty_like()
    inputs = [body.add_source(f"x{slot}", fact(text, body)) for slot, text in enumerate(facts)]
    body.set_outputs([wire_one(body, "result", op, *inputs)])
    return body


def wired(then: TypedOp, other: TypedOp, others: int = 1) -> TypedModel:
    """``then`` of x or ``other`` of as many times x, by a condition."""
    model = TypedModel()
    condition = model.add_source("condition", fact("bool"))
    x = model.add_source("x", fact("B,S,f32", model))
    first = branch_model(model, then, "B,S,f32"), [x]
    second = branch_model(model, other, *["B,S,f32"] * others), [x] * others
    model.set_outputs(wire_if(model, "if", condition, first, second))
    return model


def test_sizes_that_agree_stay() -> None:
    model = wired(Exp(), Neg())
    assert str(model.outlet_fact(model.outputs[0])) == "B,S,f32"


def test_sizes_that_differ_join_in_a_symbol_that_a_run_binds() -> None:
    model = wired(Neg(), TypedConcat(1), others=2)
    joined = model.outlet_fact(model.outputs[0])
    assert joined.shape[0] == model.symbols.parse("B")
    (name,) = joined.shape.symbols() - {"B"}
    assert name not in ("B", "S")
    total = wire_one(model, "total", Reduce((1,), Reducer.SUM), model.outputs[0])
    model.set_outputs([model.outputs[0], total])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    plan = TypedSimplePlan(model)
    for condition, wanted in ((True, -x), (False, np.concatenate([x, x], axis=1))):
        rows, sums = plan.run([np.array(condition), x])
        np.testing.assert_array_equal(rows, wanted)
        np.testing.assert_array_equal(sums, wanted.sum(axis=1, keepdims=True))


def test_what_both_branches_read_is_read_once() -> None:
    model = wired(Neg(), TypedConcat(1), others=2)
    assert len(model.node_by_name("if").inputs) == 2


@pytest.mark.parametrize(
    ("then", "other", "refused"),
    [
        (Neg(), Cast(DatumType.I32), "the else branch gives B,S,i32, and what reads it takes B,S,f32"),
        (Cast(DatumType.F16), Neg(), "the else branch gives B,S,f32, and what reads it takes B,S,f16"),
    ],
)
def test_a_branch_of_another_type_is_refused_when_a_run_takes_it(then: TypedOp, other: TypedOp, refused: str) -> None:
    model = wired(then, other)
    model.check_consistency()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    plan = TypedSimplePlan(model)
    np.testing.assert_array_equal(plan.run([np.array(True), x])[0], -x if then == Neg() else x)
    with pytest.raises(RunError, match=refused) as caught:
        plan.run([np.array(False), x])
    assert str(caught.value).endswith("hint: give inputs for which 'condition' is true")


def test_types_that_do_not_fit_are_refused_by_the_operator() -> None:
    model = TypedModel()
    branches = [Branch(branch_model(model, op, "3,f32"), (1,)) for op in (Neg(), Cast(DatumType.I32))]
    with pytest.raises(FactError, match="output 0 is 3,f32 in the then branch, 3,i32 in the else branch"):
        IfThenElse(*branches, ((3,),)).output_facts([fact("bool"), fact("3,f32")])


@pytest.mark.parametrize(
    ("inputs", "reads", "message"),
    [
        ([], (1,), "wants one boolean as condition, found no input"),
        (["f32", "3,f32"], (1,), "wants one boolean as condition, found f32"),
        (["2,bool", "3,f32"], (1,), "wants one boolean as condition, found 2,bool"),
        (["bool", "3,i32"], (1,), "the then branch wants 3,f32 where input 1 is 3,i32"),
        (["bool", "3,f32"], (1, 1), r"the then branch takes 1 inputs, reads \[1, 1\] of 2"),
        (["bool", "3,f32"], (0,), r"the then branch takes 1 inputs, reads \[0\] of 2"),
    ],
)
def test_refusals_say_what_was_found(inputs: Sequence[str], reads: tuple[int, ...], message: str) -> None:
    body = branch_model(TypedModel(), Abs(), "3,f32")
    op = IfThenElse(Branch(body, reads), Branch(body, reads), ((3,),))
    with pytest.raises(FactError, match=message):
        op.output_facts([fact(text) for text in inputs])


def test_shapes_of_another_rank_are_refused() -> None:
    body = branch_model(TypedModel(), Abs(), "3,f32")
    op = IfThenElse(Branch(body, (1,)), Branch(body, (1,)), ((3, 1),))
    with pytest.raises(FactError, match="the branches give 3,f32, shapes of other ranks are announced"):
        op.output_facts([fact("bool"), fact("3,f32")])


def test_branches_with_different_numbers_of_outputs_are_refused() -> None:
    model = TypedModel()
    one, two = branch_model(model, Abs(), "3,f32"), branch_model(model, Abs(), "3,f32")
    two.set_outputs([*two.outputs, *two.inputs])
    with pytest.raises(FactError, match="the then branch has 1 outputs, the else branch 2"):
        IfThenElse(Branch(one, (1,)), Branch(two, (1,)), ((3,),)).output_facts([fact("bool"), fact("3,f32")])


def test_cost_is_that_of_the_dearer_branch() -> None:
    model = TypedModel()
    cheap, dear = branch_model(model, Abs(), "3,f32"), branch_model(model, Reduce((0,), Reducer.SUM), "B,f32")
    op = IfThenElse(Branch(cheap, (1,)), Branch(dear, (2,)), ((3,),))
    found = if_then_else.cost(op, [fact("bool"), fact("3,f32"), fact("N,f32")], [])
    assert {kind: str(count) for kind, count in found.items()} == {"FMA(F32)": "max(3,N)"}
