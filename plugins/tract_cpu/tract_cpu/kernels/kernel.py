"""What every kernel is: a plan, which is data, and how it is written as a native function.

All native functions of kernels are called alike, ``kernel(arguments, begin, end, scratch)``: ``arguments`` are 64-bit
integers, sizes and strides in elements or addresses, in the order in which the kernel asks for them. The work is cut
into tasks that do not depend on each other, of which one call does those from ``begin`` on, up to ``end``; each task
computes the same whoever does it. ``scratch`` is memory that no other call uses meanwhile.
"""

from __future__ import annotations

from typing import Any, Protocol

from tract_cpu.isa import Isa
from tract_cpu.language.buffers import Buffer
from tract_cpu.language.function import POINTER, Function
from tract_cpu.language.types import INDEX, ElementType
from tract_cpu.language.values import Value


class Kernel(Function):
    """The native function of one kernel, while it is written."""

    def __init__(self, module: Any, name: str, isa: Isa) -> None:
        super().__init__(module, name, isa, [POINTER, INDEX, INDEX, POINTER])
        self.begin, self.end = self.argument(1), self.argument(2)
        self._passed = self.buffer(0, INDEX)
        self._next = 0

    def size(self) -> Value:
        """The next argument, a size, a stride or a position."""
        self._next += 1
        return self._passed[self._next - 1]

    def memory(self, element: ElementType) -> Buffer:
        """The next argument, an address."""
        address = self.builder.inttoptr(self.size().ir, POINTER)
        return Buffer(self, address, element)

    def scratch(self, element: ElementType) -> Buffer:
        """Memory of this call's own."""
        return self.buffer(3, element)


class KernelPlan(Protocol):
    """All that is decided about a kernel: a frozen dataclass whose fields tell it from every other kernel."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        ...

    def text(self) -> str:
        """All that it says, in a text that is equal for equal plans only."""
        ...

    def emit(self, k: Kernel) -> None:
        """Write it: nothing is decided here."""
        ...
