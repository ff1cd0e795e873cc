"""Rules for repeated tensors."""

from __future__ import annotations

from tract_core.dims import is_one
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.tile import Tile
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()


@rewrites(Tile)
def tile_of_single_elements(model: TypedModel, node: TypedNode, op: Tile) -> ModelPatch | None:
    """Tile(x) along axes of size 1 only -> MultiBroadcastTo(x); along none -> x"""
    shape = model.outlet_fact(node.inputs[0]).shape
    repeated = [axis for axis, count in enumerate(op.multipliers) if not is_one(count)]
    if not repeated:
        return ModelPatch.shunt_one(model, node)
    if not all(is_one(shape[axis]) for axis in repeated):
        return None
    return ModelPatch.replace_op(model, node, MultiBroadcastTo(tuple(node.outputs[0].fact.shape)))


ROWS.add(DECLUTTER, tile_of_single_elements.name, tile_of_single_elements)
