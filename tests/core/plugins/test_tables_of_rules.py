"""A plugin rewrites models by a table of rules of its own, to which others add."""

from __future__ import annotations

import pytest

from tract_core.model.declutter import rewrite_by
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.elementwise import Abs, Exp, Neg
from tract_core.plugins import PluginWarning, Registry, Rows
from tract_core.plugins.keys import table_of_rules
from tract_core.testing.declutter import operators, sources
from tract_core.testing.toys import toy_plugin, toy_rows

LOWERING = table_of_rules("lowering", "how one node is written for a toy")


@rewrites(Neg)
def negation(model: TypedModel, node: TypedNode, op: Neg) -> ModelPatch:
    """-x -> |x|, which no declutter would do"""
    return ModelPatch.replace_op(model, node, Abs())


@rewrites(Exp)
def fails(model: TypedModel, node: TypedNode, op: Exp) -> ModelPatch:
    """Fails at its first node"""
    raise ZeroDivisionError("in the rule")


def _rows(*rules) -> Rows:
    rows = Rows()
    for rule in rules:
        rows.add(LOWERING, rule.name, rule)
    return rows


def _model(registry: Registry) -> TypedModel:
    model, (x,) = sources("B,3,f32")
    mine = TypedModel(registry=registry)
    y = mine.add_source("x", model.outlet_fact(x))
    for name, op in (("a", Neg()), ("b", Exp()), ("c", Neg())):
        (y,) = mine.wire_node(name, op, [y])
    mine.set_outputs([y])
    return mine


def test_others_add_rules_and_those_that_fail_are_left_out() -> None:
    owner = toy_plugin(tables={"lowering": f"{__name__}:LOWERING"}, rows={"lowering": toy_rows("own", _rows(negation))})
    other = toy_plugin(rows={"lowering": toy_rows("other", _rows(fails))})
    registry = Registry({"owner": owner, "other": other}, discover=False)
    model = _model(registry)
    with pytest.warns(PluginWarning, match="rule fails"):
        report = rewrite_by(LOWERING, model, check=True)
    assert operators(model) == ["Abs", "Exp", "Abs"]
    assert report.patches == {"negation": 2}
    simple = _model(registry).declutter()
    assert operators(simple) == ["Neg", "Exp", "Neg"]
