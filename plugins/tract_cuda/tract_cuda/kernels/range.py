"""Numbers at equal distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.language.types import F64, I32, I64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.gather import refuse
from tract_cuda.kernels.positions import THREADS
from tract_cuda.language.kernel import Kernel, Parameter

_FAR: Final = 1 << 60
"""Integers from here on are refused, as differences might not fit."""

_BOUNDS: Final = ("start", "end", "step")


@frozen
class RangePlan:
    """One thread for one number, of a type, and at least one, which looks at the bounds."""

    element: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "range"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How many numbers there are, the bounds, and the result."""
        bounds = (Parameter(name, self.element) for name in _BOUNDS)
        return (Parameter("length"), *bounds, Parameter("result", self.element), Parameter("status", I32))

    def emit(self, k: Kernel) -> None:
        """result[i] = start + i * step. Refuses where that does not end where it should, after so many steps."""
        number, length = k.block() * THREADS + k.thread(), k.size("length")
        start, end, step = (k.memory(name)[0] for name in _BOUNDS)
        counted = self._floats if self.element.kind == "f" else self._integers
        with k.when(~counted(k, (start, end, step), length)):
            refuse(k)
        with k.when(number < length):
            k.memory("result")[number] = k.convert(number, self.element.computed) * step + start

    def _integers(self, k: Kernel, bounds: tuple[Value, ...], length: Value) -> Value:
        """Whether there are so many numbers for sure."""
        start, end, step = (k.convert(one, I64) for one in bounds)
        near = [(one < _FAR) & (one > -_FAR) for one in (start, end, step)]
        up = step > 0
        size, way = k.select(up, step, -step), k.select(up, end - start, start - end)
        some = k.select(size.equals(0), size.like(1), size)
        count = k.select(way > 0, (way + some - 1) // some, 0)
        return near[0] & near[1] & near[2] & size.differs(0) & count.equals(k.convert(length, I64))

    def _floats(self, k: Kernel, bounds: tuple[Value, ...], length: Value) -> Value:
        """The same; a number of steps that is none equals no length."""
        start, end, step = (k.convert(one, F64) for one in bounds)
        count = k.intrinsic("ceil", (end - start) / step)
        count = k.select(count < 0, count.like(0), count)
        return step.differs(0) & count.equals(k.convert(length, F64)) & (count < float(_FAR))
