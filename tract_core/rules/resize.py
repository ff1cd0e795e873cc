"""Rules for resized axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.dims import Dim, is_symbolic
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AddAxis, Reshape
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import AspectPolicy, Coordinates, NearestMode, Resize, Scales
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()

_HALVES: Final = frozenset({NearestMode.ROUND_PREFER_FLOOR, NearestMode.ROUND_PREFER_CEIL})

_REPEATS: Final = {
    Coordinates.ASYMMETRIC: frozenset({NearestMode.FLOOR}),
    Coordinates.HALF_PIXEL: _HALVES,
    Coordinates.HALF_PIXEL_SYMMETRIC: _HALVES,
}
"""How the nearest element must be found, so that a whole factor repeats each element that often."""


@rewrites(Resize)
def repeat_elements(model: TypedModel, node: TypedNode, op: Resize) -> ModelPatch | None:
    """Resize to the nearest element by whole factors -> each element stretched on an axis of its own, then merged"""
    sampling = op.sampling
    if sampling.interpolator is not Interpolator.NEAREST or sampling.roi:
        return None
    if sampling.nearest_mode not in _REPEATS.get(sampling.coordinates, ()):
        return None
    shape = model.outlet_fact(node.inputs[0]).shape
    factors = _whole_factors(op, [shape[axis] for axis in op.axes])
    if factors is None:
        return None
    patch = ModelPatch(model)
    x = patch.tap(node.inputs[0])
    last = max((axis for axis, factor in zip(op.axes, factors, strict=True) if factor > 1), default=None)
    for axis, factor in sorted(zip(op.axes, factors, strict=True)):
        if factor > 1:
            x = _repeated(patch, node.name if axis == last else f"{node.name}.axis{axis}", x, axis, factor)
    patch.shunt(OutletId(node.id), x)
    return patch


def _whole_factors(op: Resize, sizes: Sequence[Dim]) -> list[int] | None:
    if isinstance(op.target, Scales):
        whole = all(value >= 1 and value == int(value) for value in op.target.values)
        return [int(value) for value in op.target.values] if whole else None
    if op.target.policy is not AspectPolicy.STRETCH:
        return None
    factors: list[int] = []
    for size, target in zip(sizes, op.target.values, strict=True):
        if is_symbolic(size) or is_symbolic(target) or not int(size) or int(target) % int(size) or not int(target):
            return None
        factors.append(int(target) // int(size))
    return factors


def _repeated(patch: ModelPatch, name: str, x: OutletId, axis: int, factor: int) -> OutletId:
    shape = patch.fact(x).shape
    spaced = wire_one(patch.model, f"{name}.apart", AddAxis(axis + 1), x)
    wide = (*shape[: axis + 1], factor, *shape[axis + 1 :])
    stretched = wire_one(patch.model, f"{name}.stretched", MultiBroadcastTo(wide), spaced)
    merge = Reshape(axis, (shape[axis], factor), (shape[axis] * factor,))
    return wire_one(patch.model, name, merge, stretched)


ROWS.add(DECLUTTER, repeat_elements.name, repeat_elements)
