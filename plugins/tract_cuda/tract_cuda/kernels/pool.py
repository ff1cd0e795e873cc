"""Pools: the largest element of each window, and where it is, or the sum or mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tract_llvm.elements.binary import larger
from tract_llvm.elements.expressions import rounded
from tract_llvm.elements.reducers import REDUCTIONS, lowest
from tract_llvm.language.types import I64, INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.binary import Max
from tract_core.ops.reduce import Reducer
from tract_cuda.kernels.positions import THREADS, counted, place, strided
from tract_cuda.language.kernel import Kernel, Parameter, sizes

_ALONG = ("input", "stride", "dilation", "before", "low", "high")


@frozen
class PoolPlan:
    """One thread for one window. Axes are the batch, the spatial ones, and the channels.

    ``reducer``: `MAX` or `SUM`; ``window``: its sizes along the spatial axes; ``mean``: whether sums are divided by how
    many elements count; ``places``: the type in which places of the largest elements are told, if they are. ``order``:
    the axes in the order in which threads go over them, the last one innermost.
    """

    element: ElementType
    reducer: Reducer
    window: tuple[int, ...]
    mean: bool
    places: ElementType | None
    order: tuple[int, ...]

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
        """Sizes; along spatial axes: sizes, steps, padding, and from where to where positions count; the tensors.

        ``number``: by how much places are told to differ along each axis.
        """
        rank = len(self.window)
        along = [one for name in _ALONG for one in sizes(name, rank)]
        tensors = [*strided("data", self.element, rank + 2), *strided("result", self.element, rank + 2)]
        if self.places is not None:
            tensors += [*strided("places", self.places, rank + 2), *sizes("number", rank + 2)]
        return (*counted(rank + 2), *along, *tensors)

    def emit(self, k: Kernel) -> None:
        """result[n, i ..., c] = reduced(data[n, i * stride + w * dilation - before ..., c])"""
        number = k.block() * THREADS + k.thread()
        write = self._reduced if self.places is None else self._placed
        with k.when(number < k.size("count")):
            spots = k.spot(number, [k.size(f"size{axis}") for axis in self.order])
            write(k, [spots[self.order.index(axis)] for axis in range(len(self.order))])

    def _reduced(self, k: Kernel, at: Sequence[Value]) -> None:
        reduction = REDUCTIONS[self.reducer]
        kept = [k.variable(one) for one in reduction.start(k, self.element.computed, 0)]
        count = k.variable(k.index(0))

        def take(spots: Sequence[Value], counts: Value, inside: Value) -> None:
            count.value = count.value + k.select(counts, k.index(1), k.index(0))
            with k.when(inside):
                before = tuple(one.value for one in kept)
                after = reduction.add(before, k.memory("data")[place(k, "data", spots)], k.constant(0, INDEX))
                for variable, value in zip(kept, after, strict=True):
                    variable.value = value

        self._every(k, at, take)
        found = reduction.finish(tuple(one.value for one in kept), k.constant(1, INDEX))
        found = found / k.convert(count.value, found.type) if self.mean else found
        k.memory("result")[place(k, "result", at)] = rounded(found, self.element)

    def _placed(self, k: Kernel, at: Sequence[Value]) -> None:
        """Of the largest, the first place is kept."""
        best = k.variable(k.constant(lowest(self.element), self.element.computed))
        where = k.variable(k.constant(-1, I64))

        def take(spots: Sequence[Value], counts: Value, inside: Value) -> None:
            with k.when(inside):
                found, before = k.memory("data")[place(k, "data", spots)], best.value
                better = (found > before) | (where.value < 0)
                if found.type.kind == "f":
                    better = better | (found.differs(found) & before.equals(before))
                number = k.constant(0, I64)
                for spot, step in zip(spots, k.sizes("number", len(spots)), strict=True):
                    number = number + k.convert(spot, I64) * k.convert(step, I64)
                best.value, where.value = larger(Max(), before, found), k.select(better, number, where.value)

        self._every(k, at, take)
        places = k.memory("places")
        k.memory("result")[place(k, "result", at)] = best.value
        places[place(k, "places", at)] = k.convert(where.value, places.element.computed)

    def _every(self, k: Kernel, at: Sequence[Value], take: Callable[[Sequence[Value], Value, Value], None]) -> None:
        """Visit every position of a window: where it is, whether it counts, and whether it is inside."""
        batch, *spots, channel = at
        starts = [spot * k.size(f"stride{axis}") - k.size(f"before{axis}") for axis, spot in enumerate(spots)]

        def along(found: Sequence[Value], counts: Value, inside: Value) -> None:
            axis = len(found)
            if axis == len(starts):
                take([batch, *found, channel], counts, inside)
                return
            with k.loop(f"tap{axis}", self.window[axis]) as tap:
                spot = starts[axis] + tap * k.size(f"dilation{axis}")
                within = (spot >= 0) & (spot < k.size(f"input{axis}"))
                counting = (spot >= k.size(f"low{axis}")) & (spot < k.size(f"high{axis}"))
                along([*found, spot], counts & counting, inside & within)

        always = k.index(0).equals(0)
        along([], always, always)
