"""Which refusals a patch would take out of a model.

What operators want of sizes stays with the model when they go (`tract_core.model.conditions`). What they want of the
elements of a tensor, as that a position lies inside of an axis, is only found out by running them.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from tract_core.model.bodies import bodies_of
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import STATE


def forgets(patch: ModelPatch) -> bool:
    """Whether a node goes with ``patch`` that could have refused a run for the elements of its inputs.

    A node that the patch replaces is the business of the rule that made it. One that nothing reads any more goes too;
    it may, where the patch has the same operator on the same tensors instead. A node of the patch that nothing reads
    goes as well.
    """
    made = [node for node in patch.model.live_nodes() if _may_refuse(patch.model, node)]
    replaced = [old.node for old, _ in patch.shunts if _producers(patch.target, patch.target.nodes[old.node])]
    if not made and not replaced:
        return False
    needed = _needed(patch)
    unread = _unread(patch, needed, replaced)
    return any(node.id not in needed for node in made) or any(
        _may_refuse(patch.target, node) and not _judges_still(patch, node) for node in unread
    )


def refusing(body: TypedModel) -> frozenset[str]:
    """The names of the nodes in a body, at any depth, that could refuse a run for the elements of their inputs."""
    found: set[str] = set()
    for node in map(body.nodes.__getitem__, body.eval_order()):
        inner = bodies_of(node.op)
        found.update(f"{node.name}/{name}" for one in inner for name in refusing(one))
        if not inner and _may_refuse(body, node):
            found.add(node.name)
    return frozenset(found)


def _needed(patch: ModelPatch) -> set[int]:
    """The nodes of the patch but for those that only take the place of what nothing reads."""
    return set(patch.model.eval_order([new for old, new in patch.shunts if _is_read(patch, old)]))


def _unread(patch: ModelPatch, needed: Set[int], replaced: Iterable[int]) -> list[TypedNode]:
    """The nodes that nothing reads when the patch is applied, without those that it replaces."""
    model = patch.target
    tapped = {outlet for inner, outlet in patch.taps.items() if inner.node in needed}
    shunted = {old for old, _ in patch.shunts}
    gone: set[int] = set()
    found: list[TypedNode] = []
    pending = list(replaced)
    while pending:
        node = model.nodes[pending.pop()]
        outlets = node.outlets()
        if node.id in gone or any(_is_read(patch, outlet, gone) for outlet in outlets if outlet not in shunted):
            continue
        if not tapped.isdisjoint(outlets):
            continue
        gone.add(node.id)
        if shunted.isdisjoint(outlets):
            found.append(node)
        pending.extend(_producers(model, node))
    return found


def _producers(model: TypedModel, node: TypedNode) -> list[int]:
    """The nodes that a node reads, without constants: those refuse nothing, and nothing is in front of them."""
    found = [model.nodes[outlet.node] for outlet in node.inputs]
    return [one.id for one in found if one.inputs or one.outputs[0].fact.value is None]


def _is_read(patch: ModelPatch, outlet: OutletId, gone: Set[int] = frozenset()) -> bool:
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
