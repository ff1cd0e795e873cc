"""What a patch would want of sizes that the model does not want: a rewrite refuses no more than the original."""

from __future__ import annotations

from collections.abc import Iterable

from tract_core.dims import SymbolScope
from tract_core.errors import DimError
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
    names = frozenset[str]().union(*(condition.symbols for condition in added))
    try:
        known = model.conditions.asserted(model.symbols, names)
    except DimError:
        return False  # no run satisfies the model, which it says as it is
    return all(_follows(model, condition, known) for condition in added)


def _follows(model: TypedModel, condition: Condition, known: SymbolScope) -> bool:
    turned = Condition(condition.right, condition.relation, condition.left)
    return (condition.relation == "#" and turned in model.conditions) or bool(model.conditions.answer(condition, known))
