"""What TFLite says of quantised tensors, and the factors with a fixed point that its kernels compute with.

Source: the quantisation specification of LiteRT, and the arithmetic of its reference kernels.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.flatbuffer import FlatTable
from tract_tensorflow.tflite.schema import QUANTIZATION_DETAILS


@frozen
class Quantization:
    """A number of a tensor is (integer - zero point) * scale.

    ``scales``: f32, one for all of the tensor, or one for each position of ``axis``; ``zeros``: i64, as many.
    """

    scales: Array
    zeros: Array
    axis: int = 0

    __eq__ = object.__eq__  # arrays are not compared
    __hash__ = object.__hash__

    @property
    def scale(self) -> float:
        """The one scale. Raises Unsupported when there are several, CorruptModel when it is 0."""
        found = float(self._one(self.scales, "scales"))
        if not found:
            raise CorruptModel("the scale of a tensor is 0")
        return found

    @property
    def zero(self) -> int:
        """The one zero point. Raises Unsupported when there are several."""
        return int(self._one(self.zeros, "zero points"))

    def _one(self, values: Array, what: str) -> Array:
        if values.size != 1:
            raise Unsupported(f"a tensor with {values.size} {what} stands where one for all of it is wanted")
        return values[0]


def read_quantization(table: FlatTable | None) -> Quantization | None:
    """What a tensor says of its quantisation; ``None`` where it has no scales, or has them by blocks.

    Raises ModelError.
    """
    if table is None:
        return None
    if read_blocks(table) is not None:
        return None
    scales = table.numbers("scale")
    if not scales.size:
        return None
    zeros = table.numbers("zero_point")
    if zeros.size not in (0, 1, scales.size):
        raise CorruptModel(f"a tensor has {scales.size} scales and {zeros.size} zero points")
    if not (np.isfinite(scales) & (scales >= 0)).all():
        raise CorruptModel("the scale of a tensor is negative, or no number")
    spread = np.zeros_like(scales, np.int64) if not zeros.size else np.broadcast_to(zeros, scales.shape)
    return Quantization(scales, spread, table.integer("quantized_dimension"))


def read_blocks(table: FlatTable | None) -> FlatTable | None:
    """What a tensor says of scales by blocks; ``None`` where it has none. Raises Unsupported for other details."""
    details = None if table is None else table.union("details", QUANTIZATION_DETAILS)
    if details is not None and details.name != "BlockwiseQuantization":
        raise Unsupported(f"a tensor is quantised by {details.name}, wanted scales for all of it, an axis, or blocks")
    return details


_BITS: Final = 31


def fixed_point(factor: float) -> tuple[int, int]:
    """A factor that is not negative as ``(multiplier, shift)``: multiplier * 2**(shift - 31), of 31 bits.

    Halves are rounded up; one too small for 31 bits behind the point is 0. Raises CorruptModel unless it is finite.
    """
    if not math.isfinite(factor) or factor < 0:
        raise CorruptModel(f"the scales of a quantised operator give the factor {factor}")
    if factor == 0:
        return 0, 0
    digits, shift = math.frexp(factor)
    multiplier = math.floor(digits * 2**_BITS + 0.5)
    if multiplier == 2**_BITS:
        multiplier, shift = multiplier // 2, shift + 1
    if shift < -_BITS:
        return 0, 0
    return (2**_BITS - 1, 30) if shift > 30 else (multiplier, shift)


def fixed_points(factors: Array) -> tuple[Array, Array]:
    """The same for several: multipliers and shifts, i32."""
    pairs = [fixed_point(float(factor)) for factor in factors.reshape(-1)]
    multipliers, shifts = (np.array([pair[one] for pair in pairs], np.int32) for one in (0, 1))
    return multipliers.reshape(factors.shape), shifts.reshape(factors.shape)
