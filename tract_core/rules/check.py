"""Rules for operators that check what was said."""

from __future__ import annotations

from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.check import CheckShape
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()


@rewrites(CheckShape)
def nothing_to_check(model: TypedModel, node: TypedNode, op: CheckShape) -> ModelPatch | None:
    """CheckShape of a tensor that surely has that shape -> the tensor"""
    (source,) = node.inputs
    sizes = model.outlet_fact(source).shape
    if not all(wanted is None or model.known.same(size, wanted) for size, wanted in zip(sizes, op.shape, strict=True)):
        return None
    if node.outlets()[0] in model.outputs and model.is_interface(source):
        return None
    patch = ModelPatch.shunt_one(model, node)
    patch.retire(node.id)
    return patch


ROWS.add(DECLUTTER, nothing_to_check.name, nothing_to_check)
