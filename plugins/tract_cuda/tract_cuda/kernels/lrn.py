"""Local response normalisation: each element divided by a power of the energy of the channels around it."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.functions.power import constant_power
from tract_llvm.language.types import ElementType

from tract_core.frozen import frozen
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter


@frozen
class LrnPlan:
    """One thread for one element. ``axis``: the loop over channels, ``window`` of which count, here and around.

    ``alpha``, ``beta``, ``bias``: as the operator has them.
    ``rank``: how many loops there are.
    """

    element: ElementType
    rank: int
    axis: int
    window: int
    alpha: float
    beta: float
    bias: float

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "lrn"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, and both tensors in them."""
        tensors = (*strided("data", self.element, self.rank), *strided("result", self.element, self.rank))
        return (*counted(self.rank), *tensors)

    def emit(self, k: Kernel) -> None:
        """``result = data / (bias + alpha / window * sum of the squares of the channels around) ** beta``"""
        data = k.memory("data")
        before, after = (self.window - 1) // 2, self.window // 2
        with position(k, self.rank) as at:
            channel, step = at[self.axis], k.size(f"data.{self.axis}")
            first = k.select(channel > before, k.index(-before), k.index(0) - channel)
            stop = k.smaller(k.size(f"size{self.axis}") - channel, after + 1)
            energy, here = k.variable(k.constant(0.0, self.element.computed)), place(k, "data", at)
            with k.loop("window", stop, first) as distance:
                element = data[here + distance * step]
                energy.value = energy.value + element * element
            base = energy.value * (self.alpha / self.window) + self.bias
            k.memory("result")[place(k, "result", at)] = data[here] * constant_power(base, -self.beta)
