"""Convolutions of each channel by itself: neighbouring channels side by side, a window at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.language.kernel import Kernel, Parameter, sizes

THREADS = 128


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
        along = [sizes(name, rank) for name in ("size", "positions", "stride", "dilation", "before")]
        found = [Parameter("count"), Parameter("channels"), *(one for group in along for one in group)]
        found.append(Parameter("weights", self.weights))
        tensors = [("data", self.data), ("result", self.expression.result)]
        tensors += [(f"operand{number}", one) for number, one in enumerate(self.expression.inputs[1:])]
        for name, element in tensors:
            found += [Parameter(name, element), *sizes(f"{name}.", rank + 2)]
        return tuple(found)

    def emit(self, k: Kernel) -> None:
        """result[n, i ..., c] = expression(the sum of data[n, i * stride + w * dilation ..., c] * weights[w, c])"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            each = k.size("channels") // self.lanes
            batch, *spots, channel = k.spot(number, [number, *k.sizes("positions", len(self.window)), each])
            at = [batch, *spots, channel * self.lanes]
            total = rounded(self._sum(k, at), self.expression.inputs[0])
            operands = [self._operand(k, f"operand{place}", at, moves=moves) for place, moves in enumerate(self.moves)]
            result = self.expression.compute([total, *operands]).splat(self._vector)
            k.write(k.memory("result"), _place(k, "result", at), result)

    @property
    def _vector(self) -> int:
        return self.lanes if self.lanes > 1 else 0

    def _operand(self, k: Kernel, name: str, at: Sequence[Value], *, moves: bool) -> Value:
        memory, place = k.memory(name), _place(k, name, at)
        return k.read(memory, place, self._vector) if moves else k.read(memory, place, 0).splat(self._vector)

    def _sum(self, k: Kernel, at: Sequence[Value]) -> Value:
        data, weights, strides = k.memory("data"), k.memory("weights"), k.sizes("data.", len(at))
        begin, channels = at[0] * strides[0] + at[-1], k.size("channels")
        places, inside = list[list[Value]](), list[list[Value]]()
        for axis, size in enumerate(self.window):
            first = at[1 + axis] * k.size(f"stride{axis}") - k.size(f"before{axis}")
            spots = [first + k.size(f"dilation{axis}") * tap for tap in range(size)]
            places.append([spot * strides[1 + axis] for spot in spots])
            inside.append([(spot >= 0) & (spot < k.size(f"size{axis}")) for spot in spots])
        total = k.constant(0, self.sums, self._vector)
        for number, taps in enumerate(product(*map(range, self.window))):
            place, there = begin, k.index(0).equals(0)
            for axis, tap in enumerate(taps):
                place, there = place + places[axis][tap], there & inside[axis][tap]
            x = k.convert(k.read(data, k.select(there, place, at[-1]), self._vector), self.sums)
            y = k.convert(k.read(weights, channels * number + at[-1], self._vector), self.sums)
            x = k.select(there, x, x.like(0))
            total = x.times_plus(y, total) if self.sums.kind == "f" else x * y + total
        return total


def _place(k: Kernel, name: str, at: Sequence[Value]) -> Value:
    place = k.index(0)
    for position, stride in zip(at, k.sizes(f"{name}.", len(at)), strict=True):
        place = place + position * stride
    return place
