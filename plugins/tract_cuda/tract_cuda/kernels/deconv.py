"""Deconvolutions, one output at a time: what the input elements whose windows reach there add to it."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import rounded
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.positions import THREADS, counted, place, strided
from tract_cuda.kernels.sums import multiply_add
from tract_cuda.language.kernel import Kernel, Parameter, sizes

_ALONG = ("input", "stride", "dilation", "before")


@frozen
class DeconvPlan:
    """One thread for one output; axes are the batch, the spatial ones, and the channels.

    ``data``, ``weights``, ``result``: their types; ``sums``: in which products are summed; ``window``: its sizes along
    the spatial axes. ``order``: the axes in the order in which threads go over them, the last one innermost.
    """

    data: ElementType
    weights: ElementType
    result: ElementType
    sums: ElementType
    window: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "deconv"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Sizes of the result; channels of a group, of output and input; along spatial axes; tensors.

        The weights are [outputs, channels of a group, window ...], the bias is one number or one per output channel.
        """
        rank = len(self.window)
        along = [one for name in _ALONG for one in sizes(name, rank)]
        tensors = [*strided("data", self.data, rank + 2), *strided("result", self.result, rank + 2)]
        tensors += [*strided("weights", self.weights, rank + 2), *strided("bias", self.result, 1)]
        return (*counted(rank + 2), Parameter("outputs"), Parameter("inputs"), *along, *tensors)

    def emit(self, k: Kernel) -> None:
        """result[n, i ..., o] = bias[o] + sum of data[n, (i + before - w * dilation) / stride ..., c] * weights"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            spots = k.spot(number, [k.size(f"size{axis}") for axis in self.order])
            at = [spots[self.order.index(axis)] for axis in range(len(self.order))]
            bias = k.convert(k.memory("bias")[place(k, "bias", at[-1:])], self.sums)
            k.memory("result")[place(k, "result", at)] = rounded(self._sum(k, at) + bias, self.result)

    def _sum(self, k: Kernel, at: Sequence[Value]) -> Value:
        batch, *spots, output = at
        first = k.divided(output, k.size("outputs"))[0] * k.size("inputs")
        data, weights = k.memory("data"), k.memory("weights")
        step, other, channels = k.size(f"data.{len(at) - 1}"), k.size("weights.1"), k.size("inputs")
        total = k.variable(k.constant(0, self.sums))

        def along(axis: int, there: Value, weight: Value) -> None:
            if axis == len(spots):
                with k.loop("channel", channels) as channel:
                    x = k.convert(data[there + channel * step], self.sums)
                    y = k.convert(weights[weight + channel * other], self.sums)
                    total.value = multiply_add(x, y, total.value)
                return
            with k.loop(f"tap{axis}", self.window[axis]) as tap:
                reached = spots[axis] + k.size(f"before{axis}") - tap * k.size(f"dilation{axis}")
                spot, rest = k.divided(k.select(reached < 0, reached.like(0), reached), k.size(f"stride{axis}"))
                with k.when((reached >= 0) & rest.equals(0) & (spot < k.size(f"input{axis}"))):
                    further = weight + tap * k.size(f"weights.{2 + axis}")
                    along(axis + 1, there + spot * k.size(f"data.{1 + axis}"), further)

        along(0, batch * k.size("data.0") + first * step, output * k.size("weights.0"))
        return total.value
