"""The format Q4_0: 32 numbers along the last axis are a block of 18 bytes.

The first two bytes are a scale, in f16. Of the other 16, byte ``j`` holds the codes of the numbers ``j``, in its low
four bits, and ``j + 16``. A code ``c`` stands for ``(c - 8) * scale``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

NUMBERS: Final = 32
"""How many numbers are in a block."""

BYTES: Final = 18
"""How many bytes a block takes."""


@dataclass(frozen=True, slots=True)
class UnpackQ4(TypedOp):
    """The numbers that blocks stand for, as floats of the type ``to``: bytes [..., n, 18] -> [..., 32 * n]."""

    to: DatumType = DatumType.F32
    unpacks: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """As many axes less one. Raises FactError for what are no blocks."""
        (packed,) = arity(self, inputs, 1)
        if packed.datum_type is not DatumType.U8 or packed.rank < 2 or packed.shape[-1] != BYTES:
            raise FactError(f"{self.name}: the input is {packed}, wanted blocks of {BYTES} bytes, as 'N,{BYTES},u8'")
        if not self.to.is_float():
            raise FactError(f"{self.name} makes floats, not {self.to.short}")
        return (TypedFact.of(self.to, (*packed.shape[:-2], packed.shape[-2] * NUMBERS)),)


@ROWS.row(REFERENCE, UnpackQ4)
def reference(op: UnpackQ4, packed: Array) -> Array:
    """Computed in f32, and rounded once."""
    scale = np.ascontiguousarray(packed[..., :2]).view("<f2").astype(np.float32)
    codes = np.concatenate([packed[..., 2:] & 15, packed[..., 2:] >> 4], axis=-1)
    numbers = (codes.astype(np.float32) - 8) * scale
    return numbers.reshape(*packed.shape[:-2], packed.shape[-2] * NUMBERS).astype(op.to.numpy)


@ROWS.row(COST, UnpackQ4)
def cost(op: UnpackQ4, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """A product for each number."""
    return {f"FMA({op.to.name})": outputs[0].shape.volume}


@ROWS.row(AXES, UnpackQ4)
def axes(op: UnpackQ4, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """All axes but the last stay, so that who needs some rows of a matrix unpacks no others."""
    rank = inputs[0].rank
    return AxesMapping.natural_but([rank], [rank - 1], [rank - 2, rank - 1])


def pack(numbers: Array) -> Array:
    """Floats [..., 32 * n] -> bytes [..., n, 18]. Of each block, the number farthest from zero gets the code 0."""
    blocks = numbers.reshape(*numbers.shape[:-1], -1, NUMBERS).astype(np.float32)
    farthest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1, keepdims=True), -1)
    scale = farthest / -8
    steps = np.divide(blocks, scale, out=np.zeros_like(blocks), where=scale != 0)
    codes = np.minimum((steps + 8.5).astype(np.uint8), 15)
    half = NUMBERS // 2
    return np.concatenate([scale.astype("<f2").view(np.uint8), codes[..., :half] | codes[..., half:] << 4], axis=-1)
