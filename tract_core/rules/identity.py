"""Rules for operators that do nothing."""

from __future__ import annotations

from tract_core.model.identity import Identity
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()


@rewrites(Identity)
def remove_identity(model: TypedModel, node: TypedNode, op: Identity) -> ModelPatch | None:
    """Identity(x) -> x, unless that keeps an output of the model apart from an input or from another output"""
    (source,) = node.inputs
    if node.outlets()[0] in model.outputs and model.is_interface(source):
        return None
    return ModelPatch.shunt_one(model, node)


ROWS.add(DECLUTTER, remove_identity.name, remove_identity)
