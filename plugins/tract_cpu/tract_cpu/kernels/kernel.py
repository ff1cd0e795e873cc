"""What every kernel is: a plan, which is data, and how it is written as a native function.

All native functions of kernels are called alike, ``kernel(arguments, begin, end, scratch, course)``: ``arguments`` are
64-bit integers, sizes and strides in elements or addresses, as the `Signature` of the plan says. The work is cut into
tasks that do not depend on each other, of which one call does those from ``begin`` on, up to ``end``; each task
computes the same whoever does it. ``scratch`` is memory that no other call uses meanwhile. In ``course`` somebody says
that the run has to end (`tract_cpu.native.executor`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Function
from tract_llvm.language.types import INDEX, POINTER, ElementType
from tract_llvm.language.values import Value

from tract_cpu.kernels.signature import Signature
from tract_cpu.native.executor import OVER

BETWEEN_LOOKS: Final = 1 << 12
"""How often an innermost loop goes round before it looks whether the run has to end."""


class Kernel(Function):
    """The native function of one kernel, while it is written.

    ``watches``: whether its loops are left as soon as the run has to end. That takes time, up to half as long again, so
    such a function is only made for a step one task of which takes longer than anybody waits.
    """

    def __init__(self, module: Any, name: str, isa: Isa, *, watches: bool = False) -> None:
        super().__init__(module, name, isa, [POINTER, INDEX, INDEX, POINTER, POINTER])
        self.watches = watches
        self.begin, self.end = self.argument(1), self.argument(2)

    def scratch(self, element: ElementType) -> Buffer:
        """Memory of this call's own."""
        return self.buffer(3, element)

    def apart(self, name: str, write: Callable[[Kernel], None]) -> Callable[[Value, Value], None]:
        """A function of its own, for which registers are given out apart. ``write``: writes it, as it would this one.

        Returns what calls it, ``(begin, end)``: for the tasks from ``begin`` on, up to ``end``.
        """
        part = Kernel(self.module, f"{self.function.name}.{name}", self.isa, watches=self.watches)
        part.function.linkage = "internal"
        part.function.attributes.add("noinline")
        write(part)
        part.finish()
        taken, _, _, scratch, course = self.function.args

        def call(begin: Value, end: Value) -> None:
            self.builder.call(part.function, [taken, begin.ir, end.ir, scratch, course])

        return call

    def end_round(self, head: Any, done: Any) -> None:
        """Behind each round of a loop that has others inside, it is left where the run has to end: at ``done``."""
        if self.watches:
            goes_on = self.buffer(4, INDEX).at(OVER).read_shared().equals(0)
            self.builder.cbranch(goes_on.ir, head, done)
        else:
            self.builder.branch(head)

    @contextmanager
    def loop(self, name: str, stop: int | Value, start: int | Value = 0, step: int | Value = 1) -> Generator[Value]:
        """As of every function; one that watches is left where the run has to end."""
        if not self.watches or not isinstance(stop, Value):
            with super().loop(name, stop, start, step) as position:
                yield position
            return
        rounds = self.index(step) * BETWEEN_LOOKS
        with super().loop(f"{name}.piece", stop, start, rounds) as begin:
            end = self.smaller(begin + rounds, stop)
            with super().loop(name, end, begin, step) as position:
                yield position


class KernelPlan(Protocol):
    """All that is decided about a kernel: a frozen dataclass whose fields tell it from every other kernel."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        ...

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        ...

    def emit(self, k: Kernel) -> None:
        """Write it: nothing is decided here."""
        ...
