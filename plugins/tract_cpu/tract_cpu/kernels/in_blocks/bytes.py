"""Rows of floats as bytes in blocks: small integers with a scale for each block, which meet weights in blocks."""

from __future__ import annotations

from functools import reduce
from typing import Final

from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F32, I8, I32, U8, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.dots import DotGrouping
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size

MOST: Final = 127
"""The largest integer that the largest number of a block becomes."""

_CODES: Final = (U8.name, I8.name)
"""The types that codes may be, the best first: those up to 63 are of both."""

_SIGN: Final = 1 << 31
_INFINITY: Final = 0x7F800000
"""Bits of f32."""

_ROUNDS: Final = 12582912.0
"""1.5 * 2**23: of a number to which it is added, the lowest bits are the integer that is nearest."""

_BITS_OF_ROUNDS: Final = 0x4B400000
"""That number as f32."""

BYTES: Final = (Memory("bytes", I8), Memory("scales", F32), Memory("sums", F32))
"""Rows as bytes in blocks: the integers, the scale of each block, and that times the sum of its integers."""


def grouping_of_bytes(isa: Isa) -> DotGrouping | None:
    """How bytes with signs are multiplied with codes of a few bits, on the right, that have none."""
    ways = [one for dot in isa.dots for one in (dot, dot.other_way())]
    fit = [DotGrouping(one) for one in ways if one.left == I8.name and one.right in _CODES and one.sums == I32.name]
    return min(fit, key=lambda one: _CODES.index(one.dot.right), default=None)


@frozen
class BlockBytesPlan:
    """``element``: of the rows; ``length``: of a block, which is some vectors of ``lanes``."""

    element: ElementType
    length: int
    lanes: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "bytes"

    @property
    def signature(self) -> Signature:
        """What it is called with. ``row``: how far apart rows are; ``blocks``: how many each has."""
        return Signature.of(Size("row"), Size("blocks"), Memory("rows", self.element), *BYTES)

    def emit(self, k: Kernel) -> None:
        """What `BYTES` says of each block. A task for each row."""
        taken = self.signature.taken(k)
        blocks, rows = taken.size("blocks"), taken.memory("rows")
        bytes_, scales, sums = (taken.memory(one.name) for one in BYTES)
        with k.loop("task", k.end, k.begin) as task:
            row = rows.at(task * taken.size("row"))
            with k.loop("block", blocks) as block:
                place = task * blocks + block
                self._block(k, row.at(block * self.length), bytes_.at(place * self.length), (scales, sums), place)

    def _block(self, k: Kernel, x: Buffer, target: Buffer, heads: tuple[Buffer, Buffer], place: Value) -> None:
        starts = range(0, self.length, self.lanes)
        numbers = [k.convert(x.vector(one, self.lanes), F32) for one in starts]
        magnitudes = [one.bits(I32) & (_SIGN - 1) for one in numbers]
        largest = k.largest(reduce(lambda a, b: k.select(a > b, a, b), magnitudes))
        is_usual = (largest > 0) & (largest < _INFINITY)
        top = largest.bits(F32)
        inverse = k.select(is_usual, k.constant(MOST, F32) / top, 0.0)
        # A block with a number that is not finite becomes zeros, and its scale says what comes out.
        finite = [k.select(is_usual.splat(self.lanes), one, 0.0) for one in numbers]
        rounded = [one * inverse.splat(self.lanes) + _ROUNDS for one in finite]
        total = k.constant(0, I32, self.lanes)
        for start, one in zip(starts, rounded, strict=True):
            integers = one.bits(I32) - _BITS_OF_ROUNDS
            target.put(start, k.convert(integers, I8))
            total = total + integers
        scale = top * (1 / MOST)
        heads[0][place] = scale
        heads[1][place] = scale * k.convert(k.total(total), F32)
