"""Rules for padding."""

from __future__ import annotations

from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.pad import Pad
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()


@rewrites(Pad)
def remove_pad(model: TypedModel, node: TypedNode, op: Pad) -> ModelPatch | None:
    """Pad(x) by nothing -> x"""
    if any(dim != 0 for pair in op.pads for dim in pair):
        return None
    return ModelPatch.shunt_one(model, node)


ROWS.add(DECLUTTER, remove_pad.name, remove_pad)
