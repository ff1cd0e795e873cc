"""Weights in blocks that nobody reads so: they are unpacked when the model is prepared, not in every run."""

from __future__ import annotations

from tract_llvm.native_form.native_form import reads_blocks

from tract_core.data import Constant, DatumType
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import RuleSet, rewrites
from tract_core.model.typed import TypedModel, TypedNode, evaluate_values
from tract_core.ops.blocks import UnpackBlocks


@rewrites(UnpackBlocks)
def unpacked(model: TypedModel, node: TypedNode, op: UnpackBlocks) -> ModelPatch | None:
    """UnpackBlocks of a constant, which others read than products and look-ups of f32 -> `Const`"""
    value = model.outlet_fact(node.inputs[0]).value
    readers = model.outlet(OutletId(node.id)).successors
    stay = op.to is DatumType.F32 and all(reads_blocks(model, one) for one in readers)
    if stay or not isinstance(value, Constant):
        return None
    found = evaluate_values(model.registry, op, [value])
    return ModelPatch.replace_op(model, node, Const(found), inputs=()) if isinstance(found, Constant) else None


BLOCK_WEIGHTS = RuleSet([unpacked])


def has_blocks(model: TypedModel) -> bool:
    """Whether a model has weights in blocks, bodies aside."""
    return any(isinstance(node.op, UnpackBlocks) for node in model.nodes)
