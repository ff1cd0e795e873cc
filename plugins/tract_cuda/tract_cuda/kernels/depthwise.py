"""Convolutions of each channel by itself: neighbouring channels side by side, a window at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.positions import place, strided
from tract_cuda.kernels.sums import multiply_add, operands_of, results
from tract_cuda.language.kernel import Kernel, Parameter, sizes

THREADS = 128

_ALONG = ("input", "positions", "stride", "dilation", "before")


@frozen
class DepthwisePlan:
    """One thread for ``lanes`` neighbouring channels at one position.

    ``data``, ``weights``: their types; ``sums``: in which products are summed; ``window``: its sizes along the spatial
    axes, all of which is written out. Data, weights and results have channels side by side, in multiples of lanes, and
    weights are [window ..., channels] without gaps. ``expression``: what is computed of each sum, rounded to the type
    of its first input, and of the operands; ``moves``: of each operand, whether it moves along the channels.
    """

    data: ElementType
    weights: ElementType
    sums: ElementType
    window: tuple[int, ...]
    lanes: int
    expression: Expression
    moves: tuple[bool, ...]

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "depthwise"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Sizes, then each tensor with its strides: [batch, spatial ..., channels] of data, results and operands."""
        rank = len(self.window)
        along = [one for name in _ALONG for one in sizes(name, rank)]
        factors = (Parameter("weights", self.weights), *strided("data", self.data, rank + 2))
        return (Parameter("count"), Parameter("channels"), *along, *factors, *results(self.expression, rank + 2))

    def emit(self, k: Kernel) -> None:
        """result[n, i ..., c] = expression(the sum of data[n, i * stride + w * dilation ..., c] * weights[w, c])"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            each = k.size("channels") // self.lanes
            batch, *spots, channel = k.spot(number, [number, *k.sizes("positions", len(self.window)), each])
            at = [batch, *spots, channel * self.lanes]
            total = rounded(self._sum(k, at), self.expression.inputs[0])
            named = zip(operands_of(self.expression), self.moves, strict=True)
            operands = [self._operand(k, name, at, moves=moves) for (name, _), moves in named]
            result = self.expression.compute([total, *operands]).splat(self._vector)
            k.write(k.memory("result"), place(k, "result", at), result)

    @property
    def _vector(self) -> int:
        return self.lanes if self.lanes > 1 else 0

    def _operand(self, k: Kernel, name: str, at: Sequence[Value], *, moves: bool) -> Value:
        memory, there = k.memory(name), place(k, name, at)
        return k.read(memory, there, self._vector) if moves else k.read(memory, there, 0).splat(self._vector)

    def _sum(self, k: Kernel, at: Sequence[Value]) -> Value:
        data, weights, strides = k.memory("data"), k.memory("weights"), k.sizes("data.", len(at))
        begin, channels = at[0] * strides[0] + at[-1], k.size("channels")
        places, inside = list[list[Value]](), list[list[Value]]()
        for axis, size in enumerate(self.window):
            first = at[1 + axis] * k.size(f"stride{axis}") - k.size(f"before{axis}")
            spots = [first + k.size(f"dilation{axis}") * tap for tap in range(size)]
            places.append([spot * strides[1 + axis] for spot in spots])
            inside.append([(spot >= 0) & (spot < k.size(f"input{axis}")) for spot in spots])
        total = k.constant(0, self.sums, self._vector)
        for number, taps in enumerate(product(*map(range, self.window))):
            spot, there = begin, k.index(0).equals(0)
            for axis, tap in enumerate(taps):
                spot, there = spot + places[axis][tap], there & inside[axis][tap]
            x = k.convert(k.read(data, k.select(there, spot, at[-1]), self._vector), self.sums)
            y = k.convert(k.read(weights, channels * number + at[-1], self._vector), self.sums)
            x = k.select(there, x, x.like(0))
            total = multiply_add(x, y, total)
        return total
