"""What a patch would want of sizes that the model does not want: a rewrite refuses no more than the original."""

from __future__ import annotations

from collections.abc import Iterable

from tract_core.model.bodies import bodies_of
from tract_core.model.conditions import Condition
from tract_core.model.patch import ModelPatch
from tract_core.model.typed import TypedModel, TypedNode


def demands(patch: ModelPatch, node: TypedNode) -> bool:
    """Whether a patch for ``node`` has conditions that do not follow from those of the model.

    Where ``node`` runs bodies, what they want comes to light when they are taken out of it.
    """
    added = [condition for condition, _ in patch.model.conditions]
    return bool(added) and not bodies_of(node.op) and not _follow(patch.target, added)


def _follow(model: TypedModel, added: Iterable[Condition]) -> bool:
    if model.conditions.contradict(model.symbols):
        return False  # no run satisfies the model, which it says as it is
    return all(model.conditions.answer(condition, model.symbols) for condition in added)
