"""What is known of quantised tensors: which integers they are, in which steps, from which zero point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, evaluate_values
from tract_core.ops.axis import AxisOp
from tract_core.ops.quantize import DequantizeLinear
from tract_core.plugins.keys import Array
from tract_core.rules.pattern import produced_by

NARROW: Final = (DatumType.U8, DatumType.I8)
"""Types of which several products are summed at once."""


@frozen
class Steps:
    """A tensor of numbers: (``integers`` - ``zero``) * ``scale``."""

    integers: OutletId
    zero: int
    scale: float


@frozen
class KnownWeights:
    """A tensor of numbers that is known: ``integers`` * ``scale``, arrays of one shape.

    The integers are distances from the zero point; the scale has strides of 0 along axes on which it does not vary.
    """

    integers: Array
    scale: Array

    def varies_at_most_along(self, axes: Sequence[int]) -> bool:
        """Whether the scale surely is the same along all other axes."""
        named = enumerate(zip(self.scale.shape, self.scale.strides, strict=True))
        return self.scale.size > 0 and all(axis in axes or size == 1 or not stride for axis, (size, stride) in named)

    def scale_along(self, axes: Sequence[int]) -> Array:
        """The scale, of these axes, in order."""
        return self.scale[tuple(slice(None) if axis in axes else 0 for axis in range(self.scale.ndim))]


def narrowed(integers: Array) -> Array:
    """The same integers in the narrowest of i8, i16 and i32; the very same array where that is its type."""
    if integers.dtype == np.int8 or not integers.size:
        return integers
    low, high = int(integers.min()), int(integers.max())
    kinds = (kind for kind in (np.int8, np.int16) if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return integers.astype(next(kinds, np.int32), copy=False)


def distances(integers: Array, zero: Array) -> Array:
    """How far integers are from their zero point, in the narrowest type; the very same array where that can be."""
    if not zero.any():
        return narrowed(integers)
    wide = np.int16 if integers.itemsize == zero.itemsize == 1 else np.int32
    return narrowed(np.subtract(integers, zero, dtype=wide, casting="unsafe"))


def known(model: TypedModel, outlet: OutletId) -> Array | None:
    """The elements of a tensor that is part of the model; ``None`` where some are not finite."""
    value = model.outlet_fact(outlet).value
    if not isinstance(value, Constant) or not value.datum_type.is_number():
        return None
    return value.array if value.datum_type.is_integer() or np.isfinite(value.array).all() else None


def number(model: TypedModel, outlet: OutletId) -> Array | None:
    """A number that is known, of rank 0, and finite."""
    array = known(model, outlet)
    return array if array is not None and array.ndim == 0 else None


def steps_of(model: TypedModel, outlet: OutletId) -> Steps | None:
    """A tensor of f32 that is dequantised, by one scale that is known."""
    node = produced_by(model, outlet, DequantizeLinear)
    if node is None or node.op.to is not DatumType.F32 or model.outlet_fact(node.inputs[0]).datum_type not in NARROW:
        return None
    scale, zero = (number(model, one) for one in node.inputs[1:])
    if scale is None or zero is None:
        return None
    return Steps(node.inputs[0], int(zero), float(scale))


def weights_of(model: TypedModel, outlet: OutletId) -> KnownWeights | None:
    """A tensor of f32 that is a known one dequantised, however its axes were arranged since."""
    changes: list[AxisOp] = []
    node = model.nodes[outlet.node]
    while isinstance(node.op, AxisOp):
        changes.append(node.op)
        node = model.nodes[node.inputs[0].node]
    if not isinstance(node.op, DequantizeLinear) or node.op.to is not DatumType.F32:
        return None
    values = [model.outlet_fact(one).value for one in node.inputs]
    found = [one.array for one in values if isinstance(one, Constant)]
    if len(found) < len(values) or model.outlet_fact(node.inputs[0]).datum_type not in NARROW:
        return None
    x, scale, zero = found
    if not np.isfinite(scale).all():
        return None
    parts = [distances(x, node.op.spread(zero, x)), np.broadcast_to(node.op.spread(scale, x), x.shape)]
    for change in reversed(changes):
        moved = [evaluate_values(model.registry, change, [Constant(part)]) for part in parts]
        parts = [cast("Constant", one).array for one in moved]
    return KnownWeights(*parts)
