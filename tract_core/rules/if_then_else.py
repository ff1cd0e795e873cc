"""Rules for branches."""

from __future__ import annotations

from tract_core.errors import TractError
from tract_core.model.inline import inline_body
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.if_then_else import IfThenElse, branch_sizes
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import uniform

ROWS = Rows()


@rewrites(IfThenElse)
def known_branch(model: TypedModel, node: TypedNode, op: IfThenElse) -> ModelPatch | None:
    """IfThenElse of a condition that is part of the model -> the nodes of the branch that it takes"""
    condition = uniform(model, node.inputs[0])
    if condition is None:
        return None
    branch = op.then_branch if condition else op.else_branch
    patch = ModelPatch(model)
    patch.retire(node.id)
    inputs = [patch.tap(node.inputs[source]) for source in branch.inputs]
    try:
        outside = branch_sizes("then" if condition else "else", branch, model.input_facts(node))
        results = inline_body(patch.model, branch.body, inputs, outside, prefix=f"{node.name}.")
    except TractError:
        return None  # the branch cannot run, which it says when it is taken
    for old, new in zip(node.outlets(), results, strict=True):
        patch.shunt(old, new)
    return patch


ROWS.add(DECLUTTER, known_branch.name, known_branch)
