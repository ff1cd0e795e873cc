"""Elements side by side, gone through a vector at a time."""

from __future__ import annotations

from collections.abc import Callable

from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel


@frozen
class Run:
    """``lanes``: of a vector, 0 for elements one by one. ``masked``: whether what is left is taken under a mask.

    ``vectors``: how many are taken at once, as a longer one, as long as there are so many.
    """

    lanes: int
    masked: bool
    vectors: int = 1

    @staticmethod
    def of(isa: Isa, element: ElementType) -> Run:
        """For elements of a type."""
        bits = element.bytes * 8
        return Run(isa.lanes(bits), isa.masks_bits <= bits)

    def copy(self, k: Kernel, source: Buffer, target: Buffer, size: Value) -> None:
        """target[:size] = source[:size], whose elements are not interpreted."""
        self.each(k, size, lambda place, lanes, mask: target.put(place, source.vector(place, lanes, mask), mask))

    def fill(self, k: Kernel, value: Value, target: Buffer, size: Value) -> None:
        """target[:size] = value"""
        self.each(k, size, lambda place, lanes, mask: target.put(place, value.splat(lanes), mask))

    def each(self, k: Kernel, size: Value, visit: Callable[[Value, int, Value | None], None]) -> None:
        """Call ``visit(place, lanes, mask)`` for whole vectors, then for what is left; with 0 lanes for one element."""
        if not self.lanes:
            with k.loop("element", size) as place:
                visit(place, 0, None)
            return
        whole, done = size - size % self.lanes, k.index(0)
        if self.vectors > 1:
            block = self.vectors * self.lanes
            done = size - size % block
            with k.loop("vectors", done, step=block) as place:
                visit(place, block, None)
        with k.loop("vector", whole, done, self.lanes) as place:
            visit(place, self.lanes, None)
        if self.masked:
            with k.when(whole < size):
                visit(whole, self.lanes, k.mask(size - whole, self.lanes))
        else:
            with k.loop("rest", size, whole) as place:
                visit(place, 0, None)
