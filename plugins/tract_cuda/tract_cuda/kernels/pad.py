"""New elements at both ends of axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tract_llvm.language.function import where
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.pad import PadEdge, PadReflect, PadWrap
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter, sizes


@frozen
class PadPlan:
    """One thread for ``lanes`` neighbours of the result. ``grown``: the loops over axes that grow.

    ``mode``: where elements outside come from, a key of `_INSIDE`; ``None`` for one number.
    ``rank``: how many loops there are.
    """

    element: ElementType
    rank: int
    grown: tuple[int, ...]
    mode: type | None
    lanes: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "pad"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, both tensors in them; of axes that grow, what comes before, and the size; the number."""
        tensors = (*strided("data", self.element, self.rank), *strided("result", self.element, self.rank))
        along = (*sizes("before", len(self.grown)), *sizes("inside", len(self.grown)))
        value = () if self.mode is not None else (Parameter("value", self.element),)
        return (*counted(self.rank), *tensors, *along, *value)

    def emit(self, k: Kernel) -> None:
        """result[i, j, ...] = data[i - before, j - before, ...], as far as that is inside"""
        lanes = self.lanes if self.lanes > 1 else 0
        with position(k, self.rank) as at:
            target, inside = place(k, "result", at), k.index(0).equals(0)
            for number, axis in enumerate(self.grown):
                spot, size = at[axis] - k.size(f"before{number}"), k.size(f"inside{number}")
                if self.mode is not None:
                    at[axis] = _INSIDE[self.mode](spot, size)
                    continue
                inside = inside & (spot >= 0) & (spot < size)
                at[axis] = spot
            result = k.memory("result")
            if self.mode is not None:
                k.write(result, target, k.read(k.memory("data"), place(k, "data", at), lanes))
                return
            with k.either(inside) as (then, otherwise):
                with then:
                    k.write(result, target, k.read(k.memory("data"), place(k, "data", at), lanes))
                with otherwise:
                    k.write(result, target, k.memory("value")[0].splat(lanes))


def _clamped(spot: Value, size: Value) -> Value:
    low = where(spot < 0, spot.like(0), spot)
    return where(low < size, low, size - 1)


def _wrapped(spot: Value, size: Value) -> Value:
    rest = spot % size
    return where(rest < 0, rest + size, rest)


def _mirrored(spot: Value, size: Value) -> Value:
    """There and back again is a period, in which both ends are met once."""
    period = where(size > 1, (size - 1) * 2, size.like(1))
    rest = _wrapped(spot, period)
    return where(rest < size, rest, period - rest)


_INSIDE: Final[Mapping[type, Callable[[Value, Value], Value]]] = {
    PadEdge: _clamped,
    PadWrap: _wrapped,
    PadReflect: _mirrored,
}
"""The position inside that gives one outside its element, by the mode."""
