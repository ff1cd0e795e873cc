"""Compute early what does not depend on the model's inputs."""

from __future__ import annotations

from typing import Any, Final

from tract_core.data import Constant
from tract_core.dims import is_symbolic
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import ANY_OP, rewrites
from tract_core.model.typed import TypedModel, TypedNode, evaluate_values
from tract_core.ops.const import Const
from tract_core.ops.source import TypedSource
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()

FOLD_BYTES: Final = 4 << 20
"""A folded result may always take this many bytes; beyond, no more than the inputs that it makes superfluous."""


@rewrites(ANY_OP)
def known_value(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """A node whose value is known -> `Const`"""
    if isinstance(op, (Const, TypedSource)) or len(node.outputs) != 1:
        return None
    value = node.outputs[0].fact.value
    if value is None or not op.pure:
        return None
    return ModelPatch.replace_op(model, node, Const(value), inputs=())


@rewrites(ANY_OP)
def fold_constants(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """A pure node that reads constants only -> `Const`, unless that would unfold a small constant into a large one"""
    if not node.inputs or len(node.outputs) != 1 or not op.pure:
        return None
    values = [model.outlet_fact(outlet).value for outlet in node.inputs]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not _within_budget(model, node):
        return None
    folded = evaluate_values(model.registry, op, known)
    if not isinstance(folded, Constant):
        return None
    return ModelPatch.replace_op(model, node, Const(folded), inputs=())


def _within_budget(model: TypedModel, node: TypedNode) -> bool:
    fact = node.outputs[0].fact
    volume = fact.shape.volume
    if is_symbolic(volume):
        return False
    freed = sum(_bytes(model, outlet) for outlet in node.inputs if len(model.outlet(outlet).successors) == 1)
    return int(volume) * fact.datum_type.itemsize <= max(freed, FOLD_BYTES)


def _bytes(model: TypedModel, outlet: OutletId) -> int:
    value = model.outlet_fact(outlet).value
    return value.nbytes if isinstance(value, Constant) else 0


for rule in (known_value, fold_constants):
    ROWS.add(DECLUTTER, rule.name, rule)
