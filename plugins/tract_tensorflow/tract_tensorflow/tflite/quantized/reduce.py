"""Axes of quantised tensors reduced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, is_symbolic, product
from tract_core.errors import Unsupported
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.gemmlowp import bit_length
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.quantization import fixed_point
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.steps import centred, fixed_product, scaled, stored
from tract_tensorflow.tflite.wiring import Wiring
from tract_tensorflow.tflite_only.fixed_point import Rounding

ROWS = Rows()


def _axes(wire: Wiring) -> list[int]:
    """Those that are reduced, each once."""
    rank = wire.tensor(0).rank
    given = wire.known_ints(wire.input(1), "axes")
    return sorted({wire.axis(axis, rank) for axis in given}) if rank else []


def _kept(x: Wired, axes: Sequence[int], node: TfliteNode) -> Wired:
    return x if node.flag("keep_dims") or not axes else x.squeeze(axes)


@quantized_op(ROWS, "SUM")
def sum_(node: TfliteNode, wire: Wiring) -> Wired:
    """Sums in 32 bits"""
    axes = _axes(wire)
    total = _total(wire, axes)
    found = stored(scaled(total, np.array(node.quantization(0).scale / node.output_quantization().scale)), node)
    return _kept(found, axes, node)


def _total(wire: Wiring, axes: Sequence[int]) -> Wired:
    distances = centred(wire, 0)
    return distances.sum(axes) if axes else distances


@quantized_op(ROWS, "MEAN")
def mean(node: TfliteNode, wire: Wiring) -> Wired:
    """Sums in 32 bits, times a factor in which the count is"""
    axes, x = _axes(wire), wire.tensor(0)
    count = product(x.shape[axis] for axis in axes)
    multiplier, shift = fixed_point(node.quantization(0).scale / node.output_quantization().scale)
    total = _total(wire, axes)
    if is_symbolic(count):
        number = total.operand(np.array(1, np.int64)) * count
        parts = _divided(number, multiplier, shift)
    else:
        found = _divided_number(int(count), multiplier, shift)
        parts = total.like(found[0]), total.like(found[1])
    return _kept(stored(fixed_product(total, *parts), node), axes, node)


def _divided_number(count: int, multiplier: int, shift: int) -> tuple[int, int]:
    """A factor by a count, with as many bits behind the point as there is room for."""
    more = min(max(count, 1).bit_length() - 1, 32, 31 + shift)
    return (multiplier << more) // max(count, 1), shift - more


def _divided(count: Wired, multiplier: int, shift: int) -> tuple[Wired, Wired]:
    """The same of a count that a run knows."""
    more = (bit_length(count) - 1).minimum(31 + shift)
    wide = count * 0 + multiplier
    return ((wide << more) / count).cast(DatumType.I32), (count * 0 + shift - more).cast(DatumType.I32)


_FACTORS: Final = 256
"""Products of more numbers would be too many operators."""


@quantized_op(ROWS, "REDUCE_PROD")
def reduce_prod(node: TfliteNode, wire: Wiring) -> Wired:
    """Number by number in row-major order, scaled after each: by the root that in the end gives the output's scale"""
    axes, x, y = _axes(wire), centred(wire, 0, DatumType.I64), node.output_quantization()
    count = product(x.shape[axis] for axis in axes)
    if is_symbolic(count) or int(count) > _FACTORS or int(count) < 1:
        raise Unsupported(f"a product over {count} quantised numbers; from 1 to {_FACTORS} are done")
    factor = node.quantization(0).scale / y.scale ** (1 / int(count))
    others = [axis for axis in range(x.rank) if axis not in axes]
    kept: list[Dim] = [x.shape[axis] for axis in others]
    rows = x.transpose([*others, *axes]).reshape([*kept, int(count)])
    found = rows[..., 0]
    for place in range(1, int(count)):
        found = scaled(found * rows[..., place], np.array(factor), Rounding.SHORT).cast(DatumType.I64)
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)] if node.flag("keep_dims") else kept
    found = scaled(found, np.array(factor), Rounding.SHORT)
    return stored(found.reshape(shape), node)
