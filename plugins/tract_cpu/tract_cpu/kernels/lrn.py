"""Local response normalisation: channels as planes of elements side by side, a plane at a time."""

from __future__ import annotations

from tract_llvm.functions.power import constant_power
from tract_llvm.language.function import where
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Memory, Signature, Size


@frozen
class LrnPlan:
    """``window``: how many channels count, here and around; ``alpha``, ``beta``, ``bias``: as the operator has them.

    ``run``: how the elements of a plane are gone through.
    """

    element: ElementType
    window: int
    alpha: float
    beta: float
    bias: float
    run: Run

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "lrn"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        tensors = Memory("source", self.element), Memory("result", self.element)
        return Signature.of(*tensors, Size("channels"), Size("plane"))

    def emit(self, k: Kernel) -> None:
        """Task by task, one channel of one sample: for each element, the squares in the window around it."""
        type_ = self.element.computed
        taken = self.signature.taken(k)
        source, result = taken.memory("source"), taken.memory("result")
        channels, plane = taken.size("channels"), taken.size("plane")
        before, after = (self.window - 1) // 2, self.window // 2
        with k.loop("task", k.end, k.begin) as task:
            channel = task % channels
            first = where(channel > before, -k.index(before), -channel)
            stop = k.smaller(channels - channel, after + 1)
            here, there = source.at(task * plane), result.at(task * plane)

            def some(place: Value, lanes: int, mask: Value | None) -> None:
                energy = k.variable(k.constant(0.0, type_, lanes))
                with k.loop("window", stop, first) as step:
                    element = here.vector(step * plane + place, lanes, mask)
                    energy.value = energy.value + element * element
                base = self.bias + self.alpha / self.window * energy.value
                there.put(place, here.vector(place, lanes, mask) * constant_power(base, -self.beta), mask)

            self.run.each(k, plane, some)
