"""Pools: the largest element of each window, or the sum or mean."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import rounded
from tract_llvm.elements.reducers import REDUCTIONS
from tract_llvm.language.types import INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.reduce import Reducer
from tract_cuda.language.kernel import Kernel, Parameter, sizes

THREADS = 128


@frozen
class PoolPlan:
    """One thread for one window, neighbouring threads for neighbouring channels.

    ``reducer``: `MAX` or `SUM`; ``window``: its sizes along the spatial axes; ``mean``: whether sums are divided by how
    many elements count.
    """

    element: ElementType
    reducer: Reducer
    window: tuple[int, ...]
    mean: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "pool"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Sizes; along spatial axes: sizes, steps, padding, and from where to where positions count; two tensors."""
        rank = len(self.window)
        names = ("size", "positions", "stride", "dilation", "before", "low", "high")
        along = [one for name in names for one in sizes(name, rank)]
        tensors = [
            one for name in ("data", "result") for one in (Parameter(name, self.element), *sizes(f"{name}.", rank + 2))
        ]
        return (Parameter("count"), Parameter("channels"), *along, *tensors)

    def emit(self, k: Kernel) -> None:
        """result[n, i ..., c] = reduced(data[n, i * stride + w * dilation - before ..., c])"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            left, channel = number // k.size("channels"), number % k.size("channels")
            spots = list[Value]()
            for size in reversed(k.sizes("positions", len(self.window))):
                left, spot = left // size, left % size
                spots.append(spot)
            at = [left, *spots[::-1], channel]
            k.memory("result")[_place(k, "result", at)] = rounded(self._reduced(k, at), self.element)

    def _reduced(self, k: Kernel, at: Sequence[Value]) -> Value:
        reduction, rank = REDUCTIONS[self.reducer], len(self.window)
        kept = [k.variable(one) for one in reduction.start(k, self.element.computed, 0)]
        counted = k.variable(k.index(0))
        data, strides = k.memory("data"), k.sizes("data.", rank + 2)

        def along(axis: int, place: Value, counts: Value, inside: Value) -> None:
            if axis == rank:
                counted.value = counted.value + k.select(counts, k.index(1), k.index(0))
                with k.when(inside):
                    before = tuple(one.value for one in kept)
                    after = reduction.add(before, data[place], k.constant(0, INDEX))
                    for variable, value in zip(kept, after, strict=True):
                        variable.value = value
                return
            base = at[1 + axis] * k.size(f"stride{axis}") - k.size(f"before{axis}")
            with k.loop(f"tap{axis}", self.window[axis]) as tap:
                spot = base + tap * k.size(f"dilation{axis}")
                within = (spot >= 0) & (spot < k.size(f"size{axis}"))
                counting = (spot >= k.size(f"low{axis}")) & (spot < k.size(f"high{axis}"))
                along(axis + 1, place + spot * strides[1 + axis], counts & counting, inside & within)

        always = k.index(0).equals(0)
        along(0, at[0] * strides[0] + at[-1] * strides[-1], always, always)
        found = reduction.finish(tuple(one.value for one in kept), k.constant(1, INDEX))
        return found / k.convert(counted.value, found.type) if self.mean else found


def _place(k: Kernel, name: str, at: Sequence[Value]) -> Value:
    place = k.index(0)
    for position, stride in zip(at, k.sizes(f"{name}.", len(at)), strict=True):
        place = place + position * stride
    return place
