from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.errors import GraphError
from tract_core.model.identity import Identity
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import Rewriter, Rule, RuleSet, rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Mul, Sub
from tract_core.ops.elementwise import Abs, Exp, Neg, Sign, Tanh
from tract_core.ops.reshape import DynReshape
from tract_core.ops.wiring import wire_one
from tract_core.rules import declutter, declutter_with_report
from tract_core.testing.declutter import operators, sources


def _chain(length: int) -> TypedModel:
    model, (x,) = sources("B,S,f32")
    for count in range(length):
        x = wire_one(model, f"n{count}", Tanh() if count % 2 else Neg(), x)
    model.set_outputs([x])
    return model


@rewrites(Neg)
def neg_to_abs(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """Neg(x) -> Abs(x)"""
    return ModelPatch.replace_op(model, node, Abs())


@rewrites(Abs)
def abs_to_neg(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """Abs(x) -> Neg(x)"""
    return ModelPatch.replace_op(model, node, Neg())


def test_a_model_in_normal_form_is_looked_at_once() -> None:
    model = _chain(100)
    report = declutter_with_report(model)
    assert not report.changed
    assert set(report.visits.values()) == {1}


def test_every_node_is_visited_a_few_times_at_most() -> None:
    model = _chain(100)
    report = Rewriter([neg_to_abs]).rewrite(model)
    assert report.patches == {"neg_to_abs": 50}
    assert max(report.visits.values()) <= 6
    assert operators(model) == ["Abs", "Tanh"] * 50
    assert [model.nodes[node].name for node in model.eval_order()][1:] == [f"n{count}" for count in range(100)]


def test_rules_without_end_are_reported_by_name() -> None:
    with pytest.raises(GraphError, match=r"do not come to an end; applied most: .*neg_to_abs \(\d+ times\)"):
        Rewriter([neg_to_abs, abs_to_neg]).rewrite(_chain(3))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_so_many_patches_and_no_more(count: int) -> None:
    model = _chain(20)
    report = Rewriter([neg_to_abs], max_patches=count).rewrite(model)
    assert report.patches.total() == count
    assert operators(model).count("Abs") == count


def test_an_error_names_rule_and_node() -> None:
    def broken(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
        raise ValueError("oops")

    with pytest.raises(ValueError, match="oops") as caught:
        Rewriter([Rule("broken", (Neg,), broken)]).rewrite(_chain(1))
    assert any("rule broken looked at node #1 'n0' Neg" in note for note in caught.value.__notes__)


def test_a_forgiven_rule_looks_at_the_next_model_again() -> None:
    def fails_once(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
        failed.append(node.name)
        if len(failed) == 1:
            raise ValueError("not this one")
        return ModelPatch.replace_op(model, node, Abs())

    failed: list[str] = []
    rewriter = Rewriter([Rule("fails_once", (Neg,), fails_once)], forgive=lambda *_: True)
    first, second = _chain(3), _chain(3)
    rewriter.rewrite(first)
    rewriter.rewrite(second)
    assert operators(first) == ["Neg", "Tanh", "Neg"]
    assert operators(second) == ["Abs", "Tanh", "Abs"]


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(GraphError, match="two rules are named 'neg_to_abs'"):
        RuleSet([neg_to_abs]) + RuleSet([neg_to_abs])


def test_rule_sets_add_up_and_leave_out() -> None:
    both = RuleSet([neg_to_abs]) + RuleSet([abs_to_neg])
    assert [rule.name for rule in both] == ["neg_to_abs", "abs_to_neg"]
    assert [rule.name for rule in both.without("neg_to_abs")] == ["abs_to_neg"]


def test_a_patch_of_another_shape_is_refused() -> None:
    model, (x,) = sources("B,S,f32")
    y = wire_one(model, "exp", Exp(), x)
    model.set_outputs([y])
    patch = ModelPatch(model)
    other = patch.model.add_const("c", np.ones(3, np.float32))
    with pytest.raises(GraphError, match="a patch replaces B,S,f32 by 3,f32"):
        patch.shunt(y, other)


def test_consistency_is_checked_when_asked() -> None:
    @rewrites(Exp)
    def wrong(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
        patch = ModelPatch(model)
        (result,) = patch.wire("neg", Neg(), [patch.tap(node.inputs[0])])
        patch.model.nodes[result.node].op = Sign()
        patch.model.nodes[result.node].inputs = []
        patch.shunt(node.outlets()[0], result)
        return patch

    model, (x,) = sources("B,S,f32")
    model.set_outputs([wire_one(model, "exp", Exp(), x)])
    with pytest.raises(Exception, match="Sign takes 1 inputs, 0 were given"):
        Rewriter([wrong], check=True).rewrite(model)


def test_nodes_that_nothing_needs_are_removed() -> None:
    model, (x,) = sources("B,S,f32")
    y = wire_one(model, "exp", Exp(), x)
    wire_one(model, "unread", Neg(), wire_one(model, "unread too", Tanh(), x))
    model.set_outputs([y])
    assert operators(declutter(model)) == ["Exp"]
    assert len(model.nodes) == 2


def test_an_output_that_becomes_an_inner_tensor_keeps_its_name() -> None:
    model, (x,) = sources("B,S,f32")
    y = wire_one(model, "exp", Exp(), x)
    model.set_outputs([wire_one(model, "last", Identity(), y), wire_one(model, "tanh", Tanh(), y)])
    declutter(model)
    assert [model.outlet_name(outlet) for outlet in model.outputs] == ["last", "tanh"]


def test_an_output_never_takes_the_name_of_an_input() -> None:
    model, (x,) = sources("B,S,f32")
    zero = model.add_const("zero", np.zeros((1, 1), np.float32))
    model.set_outputs([wire_one(model, "sum", Sub(), x, zero)])
    declutter(model)
    assert [model.outlet_name(outlet) for outlet in model.inputs + model.outputs] == ["x0", "sum"]
    assert operators(model) == ["Identity"]


def test_what_is_behind_learns_what_a_patch_found_out() -> None:
    """The announced size is a size of the input after all; the product behind can then be stated, and computed."""
    model, (x,) = sources("2,3,f32")
    model.symbols.add("U")
    y = wire_one(model, "reshape", DynReshape((symbol("U"),)), x, model.add_const("shape", np.array([-1])))
    size = model.add_const("size", (symbol("U"),))
    model.set_outputs([y, wire_one(model, "twice", Mul(), size, model.add_const("two", np.array([2])))])
    declutter(model)
    assert model.outlet_fact(model.outputs[0]).shape == (6,)
    assert model.outlet_fact(model.outputs[1]).dims == (12,)
