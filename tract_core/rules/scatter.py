"""Rules for elements written to places that are part of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.concat import TypedConcat
from tract_core.ops.scatter import ScatterNd
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()


@rewrites(ScatterNd)
def scatter_of_a_block(model: TypedModel, node: TypedNode, op: ScatterNd) -> ModelPatch | None:
    """ScatterNd(x, indices, updates) -> x before, updates, x behind, where they replace a range of one axis of x"""
    x, indices, updates = node.inputs
    places = model.constant(indices)
    if op.reduction != "none" or places is None or places.ndim != places.shape[-1] + 1 or not places.size:
        return None
    shape = model.outlet_fact(x).shape
    block = _block(places)
    if block is None:
        return None
    partial = [axis for axis, size in enumerate(places.shape[:-1]) if block[axis] != 0 or shape[axis] != size]
    if len(partial) > 1 or any(first < 0 for first in block):
        return None
    if not partial:
        return ModelPatch.shunt_one(model, node, updates)
    (axis,) = partial
    return _spliced(model, node, axis, block[axis], block[axis] + places.shape[axis])


def _block(places: np.ndarray[Any, Any]) -> Sequence[int] | None:
    """Where a block of places begins, when coordinates run through it in row-major order."""
    first = places.reshape(-1, places.shape[-1])[0]
    grid = np.stack(np.meshgrid(*map(np.arange, places.shape[:-1]), indexing="ij"), axis=-1)
    return [int(one) for one in first] if np.array_equal(places, grid + first) else None


def _spliced(model: TypedModel, node: TypedNode, axis: int, start: int, end: int) -> ModelPatch | None:
    x, _, updates = node.inputs
    size: Dim = model.outlet_fact(x).shape[axis]
    if not model.known.less_or_equal(end, size):
        return None
    patch = ModelPatch(model)
    pieces = [patch.tap(updates)]
    if start > 0:
        pieces.insert(0, wire_one(patch.model, f"{node.name}.before", Slice(axis, 0, start), patch.tap(x)))
    if end != size:
        pieces.append(wire_one(patch.model, f"{node.name}.behind", Slice(axis, end, size), patch.tap(x)))
    result = wire_one(patch.model, node.name, TypedConcat(axis), *pieces)
    patch.shunt(OutletId(node.id), result)
    return patch


ROWS.add(DECLUTTER, scatter_of_a_block.name, scatter_of_a_block)
