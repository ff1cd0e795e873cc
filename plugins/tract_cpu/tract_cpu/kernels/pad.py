"""New elements at both ends of an axis, that come from the elements between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tract_llvm.language.function import where
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.pad import PadEdge, PadMode, PadReflect, PadWrap
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Each, Memory, Signature, Size


@frozen
class PadPlan:
    """``outer``: loops around. ``run``: how what lies further inside is copied, ``None`` where that is one element."""

    element: ElementType
    mode: PadMode
    outer: int
    run: Run | None

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "pad"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        sizes = Size("before"), Size("size"), Size("after"), Size("run")
        return Signature.of(*sizes, Memory("result", self.element), Each.loop("outer", self.outer, 1))

    def emit(self, k: Kernel) -> None:
        """result[..., i] = result[..., the place inside for i], for every i before ``before`` or behind ``size``."""
        taken = self.signature.taken(k)
        before, size, after, run = map(taken.size, ("before", "size", "after", "run"))
        result = taken.memory("result")
        outer = [(one.size("size"), *one.sizes("strides")) for one in taken.each("outer")]
        with k.loop("task", k.end, k.begin) as task:
            number, begin = task, result
            for count, stride in reversed(outer):
                begin = begin.at((number % count) * stride)
                number = number // count
            with k.loop("new", before + after) as i:
                place = where(i < before, i, i + size)
                source = _INSIDE[type(self.mode)](place - before, size) + before
                if self.run is None:
                    begin[place] = begin[source]
                else:
                    self.run.copy(k, begin.at(source * run), begin.at(place * run), run)


def _clamped(place: Value, size: Value) -> Value:
    low = where(place < 0, place.like(0), place)
    return where(low < size, low, size - 1)


def _wrapped(place: Value, size: Value) -> Value:
    rest = place % size
    return where(rest < 0, rest + size, rest)


def _mirrored(place: Value, size: Value) -> Value:
    """There and back again is a period, in which both ends are met once."""
    period = where(size > 1, (size - 1) * 2, size.like(1))
    rest = _wrapped(place, period)
    return where(rest < size, rest, period - rest)


_INSIDE: Final[Mapping[type, Callable[[Value, Value], Value]]] = {
    PadEdge: _clamped,
    PadWrap: _wrapped,
    PadReflect: _mirrored,
}
"""The place inside that gives a place outside its element, by the mode."""
