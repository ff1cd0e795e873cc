"""Elements picked by positions that a tensor holds."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.types import I32, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.language.kernel import Kernel, Parameter

THREADS = 256


@frozen
class GatherPlan:
    """One thread for ``lanes`` neighbours of what lies behind the axis. ``index``: the type of positions.

    More than one lane wants what lies behind side by side, in multiples of them. A position beyond the axis is told.
    """

    element: ElementType
    index: ElementType
    lanes: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "gather"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """``count``: of threads with work; ``axis``: its size; ``picked``: how many positions; ``inner``: behind it."""
        numbers = ("count", "axis", "picked", "inner", "outer_step", "axis_step", "inner_step")
        tensors = (("data", self.element), ("indices", self.index), ("result", self.element), ("status", I32))
        return (*map(Parameter, numbers), *(Parameter(name, element) for name, element in tensors))

    def emit(self, k: Kernel) -> None:
        """result[o, p, i] = data[o, indices[p], i]"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            inner, picked = k.size("inner") // self.lanes, k.size("picked")
            left, position = number // inner, (number % inner) * self.lanes
            outer, which = left // picked, left % picked
            place = outer * k.size("outer_step") + position * k.size("inner_step")
            index = self._index(k, which)
            data, vector = k.memory("data"), self.lanes if self.lanes > 1 else 0
            place = place + index * k.size("axis_step")
            k.write(k.memory("result"), number * self.lanes, k.read(data, place, vector) if vector else data[place])

    def _index(self, k: Kernel, which: Value) -> Value:
        """The position, 0 where it is beyond the axis, which is told."""
        found = k.memory("indices")[which]
        size = k.convert(k.size("axis"), found.type)
        turned = k.select(found < 0, found + size, found) if found.type.kind == "i" else found
        wrong = turned >= size
        if found.type.kind == "i":
            wrong = wrong | (turned < 0)
        with k.when(wrong):
            k.memory("status")[0] = k.constant(1, I32)
        return k.convert(k.select(wrong, turned.like(0), turned), k.positions)
