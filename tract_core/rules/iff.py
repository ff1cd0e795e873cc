"""Rules for choices between two tensors, element by element."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.iff import Iff
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import same_tensor, uniform

ROWS = Rows()


@rewrites(Iff)
def known_choice(model: TypedModel, node: TypedNode, op: Iff) -> ModelPatch | None:
    """Iff(true, a, b) -> a; Iff(false, a, b) -> b; Iff(c, a, a) -> a; stretched where the others made it larger"""
    condition, if_true, if_false = node.inputs
    known = uniform(model, condition)
    if known is None and not same_tensor(model, if_true, if_false):
        return None
    chosen = if_false if known is not None and not known else if_true
    fact = node.outputs[0].fact
    if model.outlet_fact(chosen).shape == fact.shape:
        return ModelPatch.shunt_one(model, node, chosen)
    if not fact.shape.symbols() <= model.given_symbols():
        return None  # the symbol gets its value from one of the tensors that would go
    patch = ModelPatch(model)
    stretch = MultiBroadcastTo(tuple(fact.shape))
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, stretch, patch.tap(chosen)))
    return patch


ROWS.add(DECLUTTER, known_choice.name, known_choice)
