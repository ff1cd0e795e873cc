"""Compute once what is computed twice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from tract_core.data import Constant
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import ANY_OP, rewrites
from tract_core.model.same import content
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import DECLUTTER, STATE
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import UNIFORM_ELEMENTS

ROWS = Rows()


@rewrites(ANY_OP)
def merge_duplicates(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """f(x) and another f(x), among the readers of x -> one f(x), read by the readers of both

    Readers are sorted by what they compute, never compared with one another, so that many take little longer each.
    Constants are read only where everything else is the same.
    """
    if len(node.outputs) == 1 and len(node.outputs[0].successors) < 2:
        return None  # as nearly always
    unknown = [outlet for outlet in node.outputs if outlet.fact.value is None]
    ids = dict.fromkeys(inlet.node for outlet in unknown for inlet in outlet.successors)
    if len(ids) < 2:
        return None
    readers = [reader for reader in map(model.nodes.__getitem__, ids) if _may_be_merged(model, reader)]
    alike = _groups(readers, partial(_form, model))
    equal = [twins for group in alike for twins in _groups(group, partial(_meaning, model))]
    return _merged(model, equal) if equal else None


def _may_be_merged(model: TypedModel, node: TypedNode) -> bool:
    pure = node.op.pure and not isinstance(node.op, Identity)
    return pure and model.registry[STATE].find(type(node.op)) is None


def _groups(nodes: Iterable[TypedNode], key: Callable[[TypedNode], Hashable]) -> list[list[TypedNode]]:
    """The nodes that share a key with another one; those without a key, ``None``, are apart."""
    groups: dict[Hashable, list[TypedNode]] = {}
    for node in nodes:
        groups.setdefault(key(node), []).append(node)
    return [group for found, group in groups.items() if found is not None and len(group) > 1]


def _form(model: TypedModel, node: TypedNode) -> Hashable:
    """What nodes that compute the same have in common, and what is quickly told."""
    values = [model.outlet_fact(outlet).value for outlet in node.inputs]
    inputs = [
        outlet if value is None else (value.array.dtype, value.array.shape)
        for outlet, value in zip(node.inputs, values, strict=True)
    ]
    return type(node.op), len(node.outputs), *inputs


def _meaning(model: TypedModel, node: TypedNode) -> Hashable | None:
    """What a node computes from what; ``None`` where its operator cannot be told from others."""
    try:
        return content(node.op), *(_tensor(model, outlet) for outlet in node.inputs)
    except Unsupported:
        return None


def _tensor(model: TypedModel, outlet: OutletId) -> Hashable:
    """What is equal for tensors that are certainly the same: of large constants, only for the same one."""
    value = model.outlet_fact(outlet).value
    if value is None:
        return outlet
    if value.array.size > UNIFORM_ELEMENTS:
        return id(value)
    return value.digest if isinstance(value, Constant) else value


def _merged(model: TypedModel, groups: Iterable[Sequence[TypedNode]]) -> ModelPatch:
    """Of each group one stays: an output of the model, else the one that was added first."""
    outputs = {outlet.node for outlet in model.outputs}
    patch = ModelPatch(model)
    for group in groups:
        stays = min(group, key=lambda node: (node.id not in outputs, node.id))
        for node in group:
            if node is stays:
                continue
            patch.retire(node.id, bound_elsewhere=True)
            for slot in range(len(node.outputs)):
                patch.shunt(OutletId(node.id, slot), patch.tap(OutletId(stays.id, slot)))
    return patch


ROWS.add(DECLUTTER, merge_duplicates.name, merge_duplicates)
