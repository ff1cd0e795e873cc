"""Elements side by side, copied or filled a vector at a time. What is moved is not interpreted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tract_cpu.isa import Isa
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.language.buffers import Buffer
from tract_cpu.language.types import ElementType
from tract_cpu.language.values import Value


@dataclass(frozen=True, slots=True)
class Run:
    """``lanes``: of a vector. ``masked``: whether what is left over is moved under a mask, else one by one."""

    lanes: int
    masked: bool

    @staticmethod
    def of(isa: Isa, element: ElementType) -> Run:
        """For elements of a type."""
        bits = element.bytes * 8
        return Run(isa.lanes(bits), isa.masks_bits <= bits)

    def copy(self, k: Kernel, source: Buffer, target: Buffer, size: Value) -> None:
        """target[:size] = source[:size]"""
        self._each(k, size, lambda place, lanes, mask: target.put(place, source.vector(place, lanes, mask), mask))

    def fill(self, k: Kernel, value: Value, target: Buffer, size: Value) -> None:
        """target[:size] = value"""
        self._each(k, size, lambda place, lanes, mask: target.put(place, value.splat(lanes), mask))

    def _each(self, k: Kernel, size: Value, move: Callable[[Value, int, Value | None], None]) -> None:
        whole = size - size % self.lanes
        with k.loop("run", whole, step=self.lanes) as place:
            move(place, self.lanes, None)
        if self.masked:
            with k.when(whole < size):
                move(whole, self.lanes, k.mask(size - whole, self.lanes))
        else:
            with k.loop("run.rest", size, whole) as place:
                move(place, 0, None)
