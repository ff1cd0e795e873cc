"""Convolutions one output at a time: for groups of so few channels that products of matrices would not be filled."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.positions import strided
from tract_cuda.kernels.sums import give, multiply_add, results
from tract_cuda.language.kernel import Kernel, Parameter, sizes

THREADS = 128

_ALONG = ("input", "positions", "stride", "dilation", "before")


@frozen
class WindowPlan:
    """One thread for one output, neighbouring threads for neighbouring channels.

    ``data``, ``weights``: their types; ``sums``: in which products are summed; ``window``: its sizes along the spatial
    axes. ``expression``: what is computed of each sum, rounded to the type of its first input, and of the operands,
    each with one number per output channel, or ``whole`` with all axes of the result.
    """

    data: ElementType
    weights: ElementType
    sums: ElementType
    window: tuple[int, ...]
    expression: Expression

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "window"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Sizes, then each tensor with its strides: [batch, spatial ..., channels] of data, results and operands."""
        rank = len(self.window)
        whole = map(Parameter, ("count", "batch", "outputs", "outputs_each", "channels_each"))
        along = [one for name in _ALONG for one in sizes(name, rank)]
        factors = (*strided("weights", self.weights, rank + 2), *strided("data", self.data, rank + 2))
        return (*whole, *along, *factors, *results(self.expression, rank + 2))

    def emit(self, k: Kernel) -> None:
        """result[n, i ..., o] = expression(sum of data[n, i * stride + w * dilation - before ..., c] * weights)"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            rank = len(self.window)
            left, output = number // k.size("outputs"), number % k.size("outputs")
            spots = list[Value]()
            for size in reversed(k.sizes("positions", rank)):
                left, spot = left // size, left % size
                spots.append(spot)
            at = [left, *spots[::-1], output]
            give(k, self.expression, self._sum(k, at), at)

    def _sum(self, k: Kernel, at: Sequence[Value]) -> Value:
        rank, strides = len(self.window), k.sizes("data.", len(at))
        first = at[-1] // k.size("outputs_each") * k.size("channels_each")
        data, weights, steps = k.memory("data"), k.memory("weights"), k.sizes("weights.", rank + 2)
        total = k.variable(k.constant(0, self.sums))
        begin = at[0] * strides[0] + first * strides[-1]

        def along(axis: int, place: Value, weight: Value) -> None:
            if axis == rank:
                with k.loop("channel", k.size("channels_each")) as channel:
                    x = k.convert(data[place + channel * strides[-1]], self.sums)
                    y = k.convert(weights[weight + channel * steps[1]], self.sums)
                    total.value = multiply_add(x, y, total.value)
                return
            base = at[1 + axis] * k.size(f"stride{axis}") - k.size(f"before{axis}")
            with k.loop(f"tap{axis}", self.window[axis]) as tap:
                spot = base + tap * k.size(f"dilation{axis}")
                with k.when((spot >= 0) & (spot < k.size(f"input{axis}"))):
                    along(axis + 1, place + spot * strides[1 + axis], weight + tap * steps[2 + axis])

        along(0, begin, at[-1] * steps[0])
        return total.value
