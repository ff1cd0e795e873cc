"""Rules for elements picked by positions that are part of the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import RmAxis
from tract_core.ops.gather import Gather, GatherNd
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()


@rewrites(Gather)
def gather_of_a_range(model: TypedModel, node: TypedNode, op: Gather) -> ModelPatch | None:
    """Gather(x, [i]), Gather(x, [i, i + 1, ...]) -> Slice(x); Gather(x, i) -> RmAxis(Slice(x))"""
    indices = model.constant(node.inputs[1])
    if indices is None or indices.ndim > 1 or indices.size == 0 or _is_constant(model, node.inputs[0]):
        return None
    first = int(indices.reshape(-1)[0])
    if not np.array_equal(indices.reshape(-1), np.arange(first, first + indices.size)):
        return None
    if first < 0 < first + indices.size:
        return None
    patch = ModelPatch(model)
    start = _from_front(model, node.inputs[0], op.axis, first)
    name = node.name if indices.ndim == 1 else f"{node.name}.slice"
    result = _part(patch, name, patch.tap(node.inputs[0]), Slice(op.axis, start, start + indices.size))
    if result is None:
        return None
    if indices.ndim == 0:
        result = wire_one(patch.model, node.name, RmAxis(op.axis), result)
    patch.shunt(OutletId(node.id), result)
    return patch


def _part(patch: ModelPatch, name: str, x: OutletId, part: Slice) -> OutletId | None:
    """A slice; ``None`` where it lies outside for certain, which the node reports when it runs."""
    try:
        return wire_one(patch.model, name, part, x)
    except FactError:
        return None


@rewrites(GatherNd)
def gather_of_a_place(model: TypedModel, node: TypedNode, op: GatherNd) -> ModelPatch | None:
    """GatherNd(x, [i, j]) -> x sliced on the first axes, which are removed"""
    indices = model.constant(node.inputs[1])
    if indices is None or indices.ndim != 1 or op.batch_dims != 0 or _is_constant(model, node.inputs[0]):
        return None
    patch = ModelPatch(model)
    x = patch.tap(node.inputs[0])
    for axis, index in enumerate(int(one) for one in indices):
        start = _from_front(model, node.inputs[0], axis, index)
        part = _part(patch, f"{node.name}.slice{axis}", x, Slice(axis, start, start + 1))
        if part is None:
            return None
        x = part
    for axis in reversed(range(indices.size)):
        x = wire_one(patch.model, node.name if axis == 0 else f"{node.name}.rm{axis}", RmAxis(axis), x)
    patch.shunt(OutletId(node.id), x)
    return patch


def _is_constant(model: TypedModel, outlet: OutletId) -> bool:
    return model.outlet_fact(outlet).value is not None


def _from_front(model: TypedModel, outlet: OutletId, axis: int, index: int) -> Any:
    return index if index >= 0 else model.outlet_fact(outlet).shape[axis] + index


for rule in (gather_of_a_range, gather_of_a_place):
    ROWS.add(DECLUTTER, rule.name, rule)
