"""Bytes by a table of 256 that is held in registers: an instruction finds bytes in them, or picks pairs of bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.byte_tables import ByteTable
from tract_llvm.language.function import where
from tract_llvm.language.types import U8, U16
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.map import CHUNK
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Each, Memory, Signature, Sizes

_ENTRIES = 256
_SIDE_BY_SIDE = 4
"""How many vectors are looked up with each row of a table that is read."""


def has_table(isa: Isa) -> bool:
    """Whether an instruction finds bytes in registers, or picks from two of the four registers that hold a table."""
    return isa.lookup is not None or (bool(isa.picks) and 4 * isa.vector_bytes == _ENTRIES)


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
        run, found = _entries(k.isa, taken.memory("table"))
        ends = [taken.memory("source"), taken.memory("target")]
        strides = [one.sizes("strides") for one in taken.each("loops")]

        def along(places: Sequence[Buffer], size: Value) -> None:
            source, target = places

            def some(place: Value, lanes: int, mask: Value | None) -> None:
                target.put(place, found(source.vector(place, lanes, mask)), mask)

            run.each(k, size, some)

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


def _entries(isa: Isa, table: Buffer) -> tuple[Run, Callable[[Value], Value]]:
    """How many bytes are looked up at once, and what gives their entries."""
    if isa.lookup is not None:
        return Run(isa.lookup.places, masked=False, vectors=_SIDE_BY_SIDE), ByteTable(table, isa.lookup).at
    pairs, lanes = table.of(U16), isa.lanes(U16.bits)
    parts = [pairs.vector(number * lanes, lanes) for number in range(4)]
    return Run(lanes, masked=True), lambda x: _picked(parts, x)


def _picked(parts: Sequence[Value], x: Value) -> Value:
    """The entries for bytes. ``parts``: the table, pairs of its entries as 16 bits."""
    f, wide = x.function, x.function.convert(x, U16)
    pair = wide >> 1
    low, high = (f.picked(parts[first], parts[first + 1], pair) for first in (0, 2))
    found = where(wide < _ENTRIES // 2, low, high)
    return f.convert(found >> ((wide & 1) << 3), U8)
