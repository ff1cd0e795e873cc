"""Rules for pools, and for the windows that convolutions have too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.conv import Conv
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import Explicit, ExplicitOnnxPool, Padding, PoolSpec, Valid
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()


@rewrites(MaxPool)
def drop_unread_indices(model: TypedModel, node: TypedNode, op: MaxPool) -> ModelPatch | None:
    """MaxPool whose indices nothing reads -> MaxPool without indices"""
    if op.indices is None or node.outputs[1].successors or OutletId(node.id, 1) in model.outputs:
        return None
    patch = ModelPatch(model)
    values = wire_one(patch.model, node.name, replace(op, indices=None), patch.tap(node.inputs[0]))
    patch.shunt(OutletId(node.id), values)
    return patch


@rewrites(Conv, Deconv, MaxPool, SumPool)
def plain_padding(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """Windows padded in ONNX's way, or by nothing -> padded explicitly, or not at all, where that is the same"""
    shape = model.outlet_fact(node.inputs[0]).shape
    padding = _plain(op, op.pool, shape)
    if padding is None:
        return None
    return ModelPatch.replace_op(model, node, replace(op, pool=replace(op.pool, padding=padding)))


def _plain(op: Any, pool: PoolSpec, shape: Any) -> Padding | None:
    padding = pool.padding
    if isinstance(padding, Explicit):
        return Valid() if all(size == 0 for size in (*padding.before, *padding.after)) else None
    if not isinstance(padding, ExplicitOnnxPool):
        return None
    explicit = Explicit(padding.before, padding.after)
    try:
        same = not padding.ceil_mode or pool.plan(op, shape) == replace(pool, padding=explicit).plan(op, shape)
    except FactError:  # rounded down, not a single window fits
        same = False
    return explicit if same else None


for rule in (drop_unread_indices, plain_padding):
    ROWS.add(DECLUTTER, rule.name, rule)
