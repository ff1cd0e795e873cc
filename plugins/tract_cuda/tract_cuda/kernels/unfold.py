"""The windows of a convolution side by side, so that a product of matrices sums them."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.language.kernel import Kernel, Parameter, sizes

THREADS = 256


@frozen
class UnfoldPlan:
    """One thread for ``lanes`` neighbouring channels of one position in one window. Outside of the data is 0.

    ``window``: the sizes of a window along the spatial axes. The result is [groups, batch, positions ..., window ...,
    channels of a group] without gaps. More than one lane wants channels side by side, in multiples of them.
    """

    element: ElementType
    window: tuple[int, ...]
    lanes: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "unfold"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """``count``: of threads with work; the data with its strides; along spatial axes: sizes, steps, padding."""
        rank = len(self.window)
        whole = (Parameter("count"), Parameter("batch"), Parameter("channels"))
        data = (Parameter("data", self.element), Parameter("data.batch"), Parameter("data.channel"))
        along = [sizes(name, rank) for name in ("data.axis", "size", "positions", "stride", "dilation", "before")]
        return (*whole, *data, *(one for group in along for one in group), Parameter("result", self.element))

    def emit(self, k: Kernel) -> None:
        """result[g, n, i ..., w ..., c] = data[n, i * stride + w * dilation - before ..., g * channels + c]"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            place, inside = self._place(k, number)
            data, result = k.memory("data"), k.memory("result")
            safe = k.select(inside, place, place.like(0))
            vector = self.lanes if self.lanes > 1 else 0
            found = k.read(data, safe, vector) if vector else data[safe]
            k.write(result, number * self.lanes, k.select(inside, found, found.like(0)))

    def _place(self, k: Kernel, number: Value) -> tuple[Value, Value]:
        """Where in the data an element of the result comes from, and whether it is inside."""
        channels, rank = k.size("channels"), len(self.window)
        left, channel = _cut(number, channels // self.lanes)
        taps, spots = list[Value](), list[Value]()
        for size in reversed(self.window):
            left, tap = _cut(left, k.index(size))
            taps.append(tap)
        for size in reversed(k.sizes("positions", rank)):
            left, spot = _cut(left, size)
            spots.append(spot)
        group, batch = _cut(left, k.size("batch"))
        place = batch * k.size("data.batch") + (group * channels + channel * self.lanes) * k.size("data.channel")
        inside = None
        names = ("stride", "dilation", "before", "size", "data.axis")
        for axis, (tap, spot) in enumerate(zip(taps[::-1], spots[::-1], strict=True)):
            stride, dilation, before, size, step = (k.size(f"{name}{axis}") for name in names)
            at = spot * stride + tap * dilation - before
            here = (at >= 0) & (at < size)
            inside = here if inside is None else inside & here
            place = place + at * step
        return place, k.index(0).equals(0) if inside is None else inside


def _cut(number: Value, size: Value) -> tuple[Value, Value]:
    """A number as so many whole ``size``, and the rest."""
    return number // size, number % size
