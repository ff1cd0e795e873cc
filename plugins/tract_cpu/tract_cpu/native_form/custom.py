"""Operators of others, of which there is the NumPy meaning alone: the graph of that, in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import ANY_OP, RuleSet, rewrites
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.distributions import CORE
from tract_core.plugins.keys import REFERENCE, Array
from tract_core.plugins.registry import Registry
from tract_cpu.cpu_only.composed import Composed
from tract_cpu.group.grouping import has_native_code

_CUSTOM: Final[WeakKeyDictionary[Registry, dict[type, bool]]] = WeakKeyDictionary()


def is_custom(registry: Registry, kind: type) -> bool:
    """Whether operators of a type are of somebody else, with a NumPy meaning, and native code has no row for them."""
    known = _CUSTOM.setdefault(registry, {})
    found = known.get(kind)
    if found is None:
        owner = None if has_native_code(registry, kind) else registry[REFERENCE].owner(kind)
        found = known[kind] = owner not in (None, CORE) and not issubclass(kind, (TypedSource, Const))
    return found


def has_custom(model: TypedModel) -> bool:
    """Whether such an operator is in a model; those in bodies do not count."""
    kinds: set[type] = {type(node.op) for node in model.live_nodes()}
    return any(is_custom(model.registry, kind) for kind in kinds)


@rewrites(ANY_OP)
def spelled_out(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """SomebodysOperator(x) -> the operators of the core that its NumPy meaning is made of"""
    kind = type(node.op)
    if not is_custom(model.registry, kind):
        return None
    from tract_core.model.inline import inline_body
    from tract_cpu.native_form.composed import composed_of  # models without such operators do without these
    from tract_cpu.tracing.meaning import meaning_of

    body = meaning_of(model, op, model.input_facts(node)).body
    if body is None:
        return None
    patch = ModelPatch(model)
    whole = composed_of(op, model.registry[REFERENCE][kind], body)
    if whole is not None:
        return _as_one(patch, node, *whole)
    outlets = inline_body(patch.model, body, [patch.tap(one) for one in node.inputs], prefix=f"{node.name}.")
    for old, new in zip(node.outlets(), outlets, strict=True):
        patch.shunt(old, new)
    return patch


def _as_one(patch: ModelPatch, node: TypedNode, op: Composed, arrays: Sequence[Array]) -> ModelPatch:
    held = [patch.model.add_const(f"{node.name}.{place}", one) for place, one in enumerate(arrays)]
    (outlet,) = patch.wire(node.name, op, [*map(patch.tap, node.inputs), *held])
    patch.shunt(OutletId(node.id), outlet)
    return patch


CUSTOM: Final = RuleSet([spelled_out])
"""The rule for operators of others."""
