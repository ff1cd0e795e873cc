"""Numbers at equal distances."""

from __future__ import annotations

from typing import Final

from tract_llvm.language.types import F64, INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size

CHUNK: Final = 4096
"""How many numbers are one task."""

_FAR: Final = 1 << 60
"""Integers from here on are left to the host, as differences might not fit."""


_BOUNDS: Final = ("start", "end", "step")


@frozen
class RangePlan:
    """``element``: the type of the numbers."""

    element: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "range"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        bounds = (Memory(name, self.element) for name in _BOUNDS)
        return Signature.of(Size("length"), *bounds, Memory("result", self.element), Memory("status", INDEX))

    def emit(self, k: Kernel) -> None:
        """result[i] = start + i * step. Refuses where that does not end where it should, after so many steps."""
        taken = self.signature.taken(k)
        length = taken.size("length")
        start, end, step = (taken.memory(name)[0] for name in _BOUNDS)
        result, status = taken.memory("result"), taken.memory("status")
        counted = self._floats if self.element.kind == "f" else self._integers
        with k.either(counted(k, (start, end, step), length)) as (then, otherwise):
            with then, k.loop("task", k.end, k.begin) as task:
                first = task * CHUNK
                with k.loop("place", k.smaller(first + CHUNK, length), first) as place:
                    result[place] = k.convert(place, self.element.computed) * step + start
            with otherwise:
                status[0] = k.index(1)

    def _integers(self, k: Kernel, bounds: tuple[Value, ...], length: Value) -> Value:
        """Whether there are so many numbers for sure."""
        start, end, step = (k.convert(one, INDEX) for one in bounds)
        near = [(one < _FAR) & (one > -_FAR) for one in (start, end, step)]
        up = step > 0
        size, way = k.select(up, step, -step), k.select(up, end - start, start - end)
        some = k.select(size.equals(0), size.like(1), size)
        count = k.select(way > 0, (way + some - 1) // some, 0)
        return near[0] & near[1] & near[2] & size.differs(0) & count.equals(length)

    def _floats(self, k: Kernel, bounds: tuple[Value, ...], length: Value) -> Value:
        """The same; a number of steps that is none equals no length."""
        start, end, step = (k.convert(one, F64) for one in bounds)
        count = k.intrinsic("ceil", (end - start) / step)
        count = k.select(count < 0, count.like(0), count)
        return step.differs(0) & count.equals(k.convert(length, F64)) & (count < float(_FAR))
