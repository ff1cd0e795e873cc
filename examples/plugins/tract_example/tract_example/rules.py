"""What declutter makes of `Smooth`."""

from __future__ import annotations

from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_example.smooth import Smooth

ROWS = Rows()


@rewrites(Smooth)
def smooth_without_memory(model: TypedModel, node: TypedNode, op: Smooth) -> ModelPatch | None:
    """``Smooth`` with no coefficient but 0 -> its input"""
    if op.decay.array.any():
        return None
    return ModelPatch.shunt_one(model, node)


ROWS.add(DECLUTTER, smooth_without_memory.name, smooth_without_memory)
