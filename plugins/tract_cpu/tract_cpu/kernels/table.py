"""Bytes by a table of 256: held in registers, from which an instruction picks pairs of bytes."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import where
from tract_llvm.language.types import U8, U16
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.map import CHUNK
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Each, Memory, Signature, Sizes

_ENTRIES = 256


def can_pick(isa: Isa) -> bool:
    """Whether four registers hold a table, and an instruction picks from two of them."""
    return bool(isa.picks) and 4 * isa.vector_bytes == _ENTRIES


@frozen
class TablePlan:
    """``rank``: how many loops there are, the innermost over bytes that are side by side in both tensors."""

    rank: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "table"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        tensors = Memory("table", U8), Memory("source", U8), Memory("target", U8)
        return Signature.of(Sizes("sizes", self.rank), *tensors, Each.of("loops", self.rank, Sizes("strides", 2)))

    def emit(self, k: Kernel) -> None:
        """result[i, j, ...] = table[x[i, j, ...]]"""
        taken = self.signature.taken(k)
        sizes = taken.sizes("sizes")
        table, lanes = taken.memory("table").of(U16), k.isa.lanes(U16.bits)
        ends = [taken.memory("source"), taken.memory("target")]
        strides = [one.sizes("strides") for one in taken.each("loops")]
        parts = [table.vector(number * lanes, lanes) for number in range(4)]

        def along(places: Sequence[Buffer], size: Value) -> None:
            source, target = places

            def some(place: Value, lanes: int, mask: Value | None) -> None:
                target.put(place, _picked(parts, source.vector(place, lanes, mask)), mask)

            Run(lanes, masked=True).each(k, size, some)

        def nested(places: Sequence[Buffer], axis: int) -> None:
            if axis == self.rank - 1:
                along(places, sizes[-1])
                return
            with k.loop(f"axis{axis}", sizes[axis]) as position:
                nested(_moved(places, position, strides[axis]), axis + 1)

        if self.rank == 1:
            with k.loop("task", k.end, k.begin) as task:
                begin = task * CHUNK
                along([one.at(begin) for one in ends], k.smaller(sizes[0] - begin, CHUNK))
            return
        with k.loop("axis0", k.end, k.begin) as position:
            nested(_moved(ends, position, strides[0]), 1)


def _moved(places: Sequence[Buffer], position: Value, strides: Sequence[Value]) -> list[Buffer]:
    return [place.at(position * stride) for place, stride in zip(places, strides, strict=True)]


def _picked(parts: Sequence[Value], x: Value) -> Value:
    """The entries for bytes. ``parts``: the table, pairs of its entries as 16 bits."""
    f, wide = x.function, x.function.convert(x, U16)
    pair = wide >> 1
    low, high = (f.picked(parts[first], parts[first + 1], pair) for first in (0, 2))
    found = where(wide < _ENTRIES // 2, low, high)
    return f.convert(found >> ((wide & 1) << 3), U8)
