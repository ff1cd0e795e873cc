"""Rules for running sums."""

from __future__ import annotations

from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.cumsum_loop import begins_so, running_of
from tract_core.ops.scan import Scan
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()


@rewrites(Scan)
def running_loop_is_one_operator(model: TypedModel, node: TypedNode, op: Scan) -> ModelPatch | None:
    """Scan that adds each slice to the sum so far -> CumSum; of products, extremes and such likewise"""
    if not op.reset_every_turn or len(node.inputs) != 2:
        return None
    x, start = node.inputs
    found = running_of(op, model.outlet_fact(x))
    if found is None or not begins_so(model, start, found):
        return None
    return ModelPatch.replace_op(model, node, found, [x])


ROWS.add(DECLUTTER, running_loop_is_one_operator.name, running_loop_is_one_operator)
