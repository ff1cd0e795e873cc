"""Which refusals a patch would take out of a model.

What operators want of sizes stays with the model when they go (`tract_core.model.conditions`). What they want of the
elements of a tensor, as that a position lies inside of an axis, is only found out by running them.
"""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import STATE


def forgets(patch: ModelPatch) -> bool:
    """Whether a node goes with ``patch`` that could have refused a run for the elements of its inputs.

    A node that the patch replaces is the business of the rule that made it. One that nothing reads any more goes too;
    it may, where the patch has the same operator on the same tensors instead.
    """
    return any(_may_refuse(patch.target, node) and not _judges_still(patch, node) for node in _unread(patch))


def _unread(patch: ModelPatch) -> list[TypedNode]:
    """The nodes that nothing reads when the patch is applied, without those that it replaces."""
    model = patch.target
    shunted = {old for old, _ in patch.shunts}
    gone: set[int] = set()
    found: list[TypedNode] = []
    pending = [old.node for old in shunted]
    while pending:
        node = model.nodes[pending.pop()]
        if node.id in gone or any(_is_read(patch, outlet, gone) for outlet in node.outlets() if outlet not in shunted):
            continue
        if any(map(patch.reads, node.outlets())):
            continue
        gone.add(node.id)
        if shunted.isdisjoint(node.outlets()):
            found.append(node)
        pending.extend(outlet.node for outlet in node.inputs)
    return found


def _is_read(patch: ModelPatch, outlet: OutletId, gone: set[int]) -> bool:
    """Whether a node that stays reads an outlet, or the model gives or takes it."""
    model = patch.target
    return any(inlet.node not in gone for inlet in model.outlet(outlet).successors) or model.is_interface(outlet)


def _may_refuse(model: TypedModel, node: TypedNode) -> bool:
    """Whether it is an operator that refuses elements, or runs a body, and was not computed already."""
    if all(outlet.fact.value is not None for outlet in node.outputs):
        return False
    return bool(_judged(node.op, len(node.inputs))) or model.registry[STATE].find(type(node.op)) is not None


def _judged(op: TypedOp, count: int) -> list[int]:
    return [slot for slot in op.judges if slot < count]


def _judges_still(patch: ModelPatch, node: TypedNode) -> bool:
    """Whether the patch holds an operator of that type on the same tensors, where it judges their elements."""
    judged = _judged(node.op, len(node.inputs))
    for other in patch.model.live_nodes():
        if (
            type(other.op) is type(node.op)
            and judged
            and all(patch.taps.get(other.inputs[slot]) == node.inputs[slot] for slot in judged)
        ):
            return True
    return False
