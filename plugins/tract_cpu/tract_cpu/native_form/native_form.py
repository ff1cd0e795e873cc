"""The form of a model that kernels are made for: what this runtime rewrites before it decides on kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tract_core.data import DatumType
from tract_core.model.bodies import OpWithBodies, bodies_of, map_bodies
from tract_core.model.declutter import rewrite_by
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import ANY_OP, Rewriter, RuleSet, rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_cpu.native_form.custom import CUSTOM, has_custom
from tract_cpu.native_form.table import RULES

_BYTES: Final = (DatumType.U8, DatumType.I8)


def native_form(model: TypedModel) -> TypedModel:
    """The model in that form: the very same one where no rule is about it.

    Rules are about tensors of bytes, and about operators of others.
    """
    custom, has_bytes = _has(has_custom, model), _has(_has_bytes, model)
    if not custom and not has_bytes:
        return model
    copy = model.clone()
    changed = custom and Rewriter(CUSTOM).rewrite(copy).changed
    if has_bytes:
        from tract_cpu.native_form.elements import ON_ELEMENTS  # most models do without

        changed = rewrite_by(RULES, copy).changed or changed
        changed = Rewriter(ON_ELEMENTS).rewrite(copy).changed or changed
    changed = Rewriter(_IN_BODIES).rewrite(copy).changed or changed
    copy.compact()
    return copy if changed else model


def _has_bytes(model: TypedModel) -> bool:
    """Whether a tensor in it is of bytes."""
    return any(outlet.fact.datum_type in _BYTES for node in model.nodes for outlet in node.outputs)


def _has(what: Callable[[TypedModel], bool], model: TypedModel) -> bool:
    """Whether that is in a model, or in one of its bodies."""
    if what(model):
        return True
    inside = (body for node in model.nodes if isinstance(node.op, OpWithBodies) for body in bodies_of(node.op))
    return any(_has(what, body) for body in inside)


@rewrites(ANY_OP)
def native_bodies(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """Scan, IfThenElse ... -> the same with their bodies in native form"""
    found = map_bodies(op, native_form) if isinstance(op, OpWithBodies) else op
    return None if found is op else ModelPatch.replace_op(model, node, found)


_IN_BODIES: Final = RuleSet([native_bodies])
