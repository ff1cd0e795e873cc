"""The best elements of each row, in order: each element counts those that come before it.

That takes as many comparisons as a row has pairs, but these are independent of each other, and equal elements keep
their order by nature.
"""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import I32, I64, U32, U64, ElementType, bits_of
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.gather import refuse
from tract_cuda.kernels.positions import THREADS, counted, place, strided
from tract_cuda.language.kernel import Kernel, Parameter

_MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


@frozen
class TopkPlan:
    """One thread for one element, in so many loops over rows. ``count``: the type in which the run says how many.

    It refuses where so many were not announced.
    ``largest``: whether the largest ones come first; ``rank``: how many loops there are.
    """

    element: ElementType
    count: ElementType
    largest: bool
    rank: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "topk"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops over rows, three tensors in them, and along rows; how many elements are kept, and asked for."""
        bits = bits_of(self.element)
        tensors = (("data", bits), ("values", bits), ("places", I64))
        along = [
            one for name, element in tensors for one in (*strided(name, element, self.rank), Parameter(f"{name}.step"))
        ]
        numbers = (Parameter("length"), Parameter("parts"), Parameter("kept"))
        return (*counted(self.rank)[1:], *along, *numbers, Parameter("asked", self.count), Parameter("status", I32))

    def emit(self, k: Kernel) -> None:
        """values[row, i], places[row, i] = the element of data[row] with i elements before it, and where it is"""
        with k.when(k.convert(k.memory("asked")[0], I64).differs(k.convert(k.size("kept"), I64))):
            refuse(k)
        row, part = k.divided(k.block(), k.size("parts"))
        at = k.spot(row, k.sizes("size", self.rank))
        source, length, mine = place(k, "data", at), k.size("length"), part * THREADS + k.thread()
        inside = mine < length
        bits = self._read(k, source, k.select(inside, mine, k.index(0)))
        rank = self._rank(k, source, mine, self._key(k, bits))
        with k.when(inside & (rank < k.size("kept"))):
            values, places = (place(k, name, at) + rank * k.size(f"{name}.step") for name in ("values", "places"))
            k.memory("values")[values] = bits
            k.memory("places")[places] = k.convert(mine, I64)

    def _rank(self, k: Kernel, source: Value, mine: Value, key: Value) -> Value:
        """How many elements come before one, piece by piece of the row."""
        laid, length, rank = k.shared(key.type, THREADS), k.size("length"), k.variable(k.index(0))
        with k.loop("piece", length, step=THREADS) as first:
            there = first + k.thread()
            k.barrier()
            laid[k.thread()] = self._key(k, self._read(k, source, k.select(there < length, there, k.index(0))))
            k.barrier()
            with k.loop("other", k.smaller(length - first, THREADS)) as number:
                before = self._is_before(laid, number, key) | (laid[number].equals(key) & (first + number < mine))
                rank.value = rank.value + k.select(before, k.index(1), k.index(0))
        return rank.value

    def _is_before(self, laid: Buffer, number: Value, key: Value) -> Value:
        return laid[number] > key if self.largest else laid[number] < key

    def _read(self, k: Kernel, source: Value, spot: Value) -> Value:
        return k.memory("data")[source + spot * k.size("data.step")]

    def _key(self, k: Kernel, bits: Value) -> Value:
        """An integer without sign that is as large as the element, among others of its type."""
        kind, top = self.element.kind, 1 << self.element.bits - 1
        if kind == "i":
            bits = bits ^ top
        elif kind == "f":
            infinite = ((1 << self.element.bits - 1 - _MANTISSA[self.element.name]) - 1) << _MANTISSA[self.element.name]
            size = bits & (top - 1)
            turned = k.select((bits & top).differs(0), ~bits, bits | top)
            turned = k.select(size.equals(0), bits.like(top), turned)
            bits = k.select(size > infinite, bits.like(2 * top - 1), turned)
        return k.convert(bits, U64 if bits.type.bits > U32.bits else U32)
