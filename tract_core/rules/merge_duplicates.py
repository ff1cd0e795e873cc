"""Compute once what is computed twice."""

from __future__ import annotations

from typing import Any

from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import ANY_OP, rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import DECLUTTER, STATE
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import MOST_READERS, same_tensor

ROWS = Rows()


@rewrites(ANY_OP)
def merge_duplicates(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """f(x) and another f(x) -> one f(x), read by the readers of both"""
    shared = _least_read(model, node)
    if shared is None or isinstance(op, Identity):
        return None
    for inlet in model.outlet(node.inputs[shared]).successors:
        other = model.nodes[inlet.node]
        if inlet.node == node.id or inlet.slot != shared or type(other.op) is not type(op):
            continue
        if _same(model, node, other) and _rank(model, other) < _rank(model, node):
            return _merged(model, node, other)
    return None


def _least_read(model: TypedModel, node: TypedNode) -> int | None:
    """The input of a pure node, without state, that has the fewest other readers.

    ``None`` when one has none at all, or when all have too many.
    """
    if not node.inputs or not node.op.pure:
        return None
    known: list[tuple[int, int]] = []
    for slot, outlet in enumerate(node.inputs):
        source = model.nodes[outlet.node].outputs[outlet.slot]
        if source.fact.value is None:
            if len(source.successors) == 1:
                return None
            known.append((len(source.successors), slot))
    if not known or model.registry[STATE].find(type(node.op)) is not None:
        return None
    readers, slot = min(known)
    return slot if readers <= MOST_READERS else None


def _rank(model: TypedModel, node: TypedNode) -> tuple[bool, int]:
    """Of two equal nodes, the lower one stays: an output of the model, else the one that was added first."""
    return all(outlet.node != node.id for outlet in model.outputs), node.id


def _same(model: TypedModel, a: TypedNode, b: TypedNode) -> bool:
    if len(a.inputs) != len(b.inputs) or len(a.outputs) != len(b.outputs):
        return False
    pairs = list(zip(a.inputs, b.inputs, strict=True))
    return all(same_tensor(model, left, right) for left, right in pairs) and a.op == b.op


def _merged(model: TypedModel, node: TypedNode, other: TypedNode) -> ModelPatch:
    """``node`` goes, ``other`` stays."""
    patch = ModelPatch(model)
    for slot in range(len(node.outputs)):
        patch.shunt(OutletId(node.id, slot), patch.tap(OutletId(other.id, slot)))
    return patch


ROWS.add(DECLUTTER, merge_duplicates.name, merge_duplicates)
