"""What operators on quantised tensors have in common: sums into the steps of the output, and the ends of its type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, Unsupported
from tract_core.ops.rounding import limits
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.file import TfliteTensor
from tract_tensorflow.tflite.gemmlowp import inverse_square_root
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.quantization import fixed_points
from tract_tensorflow.tflite.wiring import Wiring
from tract_tensorflow.tflite_only.fixed_point import SMALL_SHIFTS, SMALL_SUM, FixedPointScale, FixedPointSteps, Rounding


def storage(tensor: TfliteTensor) -> DatumType:
    """The type of a quantised tensor's integers. Raises Unsupported for a resource."""
    if tensor.kind is None or not tensor.kind.is_integer():
        raise Unsupported(f"a quantised tensor is of type {tensor.type_name}")
    return tensor.kind


def scaled(x: Wired, factors: Array, rounding: Rounding = Rounding.TWICE) -> Wired:
    """Integers times factors, which have as many axes or none, rounded as TFLite rounds them, as i32."""
    multipliers, shifts = _fixed_factors(x, factors)
    shrinks = bool((shifts < 0).all())
    return x.op(FixedPointScale(rounding, shrinks), x.operand(multipliers), x.operand(shifts))


def _fixed_factors(x: Wired, factors: Array) -> tuple[Array, Array]:
    """Multipliers and shifts, with as many axes as ``x`` has."""
    return fixed_points((factors if factors.ndim else factors.reshape([1] * x.rank)).astype(np.float64))


def stored_sums(
    x: Wired, factors: Array, node: TfliteNode, rounding: Rounding = Rounding.TWICE, *, most: int | None = None
) -> Wired:
    """Sums times factors as the integers of the output: what is fused is done. ``most``: what sums do not go beyond.

    Sums of which it is known that nothing is cut off on the way are stored by one operator.
    """
    multipliers, shifts = _fixed_factors(x, factors)
    first, last = SMALL_SHIFTS
    small = most is not None and most < SMALL_SUM and bool(((shifts >= first) & (shifts <= last)).all())
    if not small or rounding is not Rounding.TWICE or x.dtype is not DatumType.I32:
        return stored(scaled(x, factors, rounding), node)
    return x.op(small_steps(node), x.operand(multipliers), x.operand(shifts))


def small_steps(node: TfliteNode) -> FixedPointSteps:
    """What makes the integers of the output of sums that are small enough."""
    low, high = activation_ends(node)
    return FixedPointSteps(node.output_quantization().zero, low, high, storage(node.output()))


def fixed_product(x: Wired, multipliers: Wired, shifts: Wired, rounding: Rounding = Rounding.TWICE) -> Wired:
    """Integers times multipliers and powers of two that a run computes, as i32; all stretch to a common shape."""
    x, multipliers, shifts = map(x.with_outlet, x.wire.ranks(x.outlet, multipliers.outlet, shifts.outlet))
    return x.op(FixedPointScale(rounding), multipliers, shifts)


def one_over_root(x: Wired) -> tuple[Wired, Wired]:
    """The reciprocal of the root of integers, i64 below 2**31, as multipliers and shifts to the right, from 0 on."""
    # Four times too large a number has a root that is twice too large: down to what the root is taken of.
    large = (x >> 29).minimum(1)
    multiplier, shift = inverse_square_root((x >> (large * 2)).maximum(2))
    left = (-(shift + large)).maximum(0)
    return (x < 2).where(2**31 - 1, multiplier << left), (x < 2).where(0, (shift + large).maximum(0))


def shifted_right(x: Wired, bits: int) -> Wired:
    """Integers of i32 with a bit to spare, divided by a power of two, halves away from zero."""
    return (x + 2 ** (bits - 1) + (x >> 31)) >> bits if bits else x


def require_same_steps(node: TfliteNode, count: int = 2) -> None:
    """Let the first inputs have the scale and the zero point of the output. Raises CorruptModel."""
    y = node.output_quantization()
    for slot in range(count):
        x = node.quantization(slot)
        if (x.scale, x.zero) != (y.scale, y.zero):
            found, wanted = f"{x.scale:g} and {x.zero}", f"{y.scale:g} and {y.zero}"
            raise CorruptModel(f"input {slot} has scale and zero point {found}, the output has {wanted}")


def stored(x: Wired, node: TfliteNode, slot: int = 0) -> Wired:
    """i32 in steps of an output, counted from its zero point, as the integers that it holds: what is fused is done."""
    low, high = activation_ends(node, slot)
    shifted = x + node.output_quantization(slot).zero
    return shifted.maximum(low).minimum(high).cast(storage(node.output(slot)))


def activation_ends(node: TfliteNode, slot: int = 0) -> tuple[int, int]:
    """The least and the greatest integer of an output, in its type and by what is fused. Raises Unsupported."""
    quantization = node.output_quantization(slot)
    low, high = limits(storage(node.output(slot)))
    ends = _ENDS.get(node.activation)
    if ends is None:
        raise Unsupported(f"{node.activation} of quantised numbers, fused into another operator")
    bounds = [None if end is None else _step(end, quantization.scale, quantization.zero) for end in ends]
    return max(low, low if bounds[0] is None else bounds[0]), min(high, high if bounds[1] is None else bounds[1])


_ENDS: dict[str, Sequence[float | None]] = {
    "NONE": (None, None),
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}


_FAR: Final = 2.0**62
"""Beyond what any type has; scales may be so small that no float holds the quotient."""


def _step(number: float, scale: float, zero: int) -> int:
    """The step in which a number lies: the quotient in f32, halves away from zero; beyond all types, one that is."""
    with np.errstate(over="ignore"):
        quotient = min(max(float(np.float32(number) / np.float32(scale)), -_FAR), _FAR)
    return zero + int(np.copysign(np.floor(abs(quotient) + 0.5), quotient))


def centred(wire: Wiring, slot: int, to: DatumType = DatumType.I32) -> Wired:
    """An input's integers as distances from its zero point."""
    x, zero = wire.tensor(slot).cast(to), wire.node.quantization(slot).zero
    return x - zero if zero else x
