"""Running sums, products and extremes: a thread for a row where rows lie side by side, else a block, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tract_llvm.elements.binary import larger, smaller
from tract_llvm.elements.reducers import highest, lowest
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import I32, U32, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.binary import Max, Min
from tract_core.ops.cumsum import CumMax, CumMin, CumProd, CumSum, Running
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.arch import WARP
from tract_cuda.language.kernel import Kernel, Parameter

ITEMS: Final = 4
"""How many elements a thread of a block has of a piece."""

_STEPS: Final = (Parameter("length"), Parameter("data.step"), Parameter("result.step"))
"""How many elements a row has, and how far apart these are in both tensors."""


JOINED: Final[Mapping[type[Running], Callable[[Value, Value], Value]]] = {
    CumSum: lambda a, b: a + b,
    CumProd: lambda a, b: a * b,
    CumMax: lambda a, b: larger(Max(), a, b),
    CumMin: lambda a, b: smaller(Min(), a, b),
}
"""What two elements are joined to."""

_NEUTRAL: Final[Mapping[type[Running], Callable[[ElementType], float]]] = {
    CumSum: lambda _: 0,
    CumProd: lambda _: 1,
    CumMax: lowest,
    CumMin: highest,
}
"""What changes nothing."""


@frozen
class RunningPlan:
    """One thread for one row, in so many loops. ``kind``: how elements are joined, a key of `JOINED`.

    ``exclusive``: whether each element is left out of what it is joined to.
    ``rank``: how many loops there are.
    """

    kind: type[Running]
    element: ElementType
    rank: int
    exclusive: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "running"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops over rows, both tensors in them, and along a row."""
        tensors = (*strided("data", self.element, self.rank), *strided("result", self.element, self.rank))
        return (*counted(self.rank), *tensors, *_STEPS)

    def emit(self, k: Kernel) -> None:
        """result[row, i] = data[row, 0], ..., data[row, i], joined"""
        with position(k, self.rank) as at:
            source, target = place(k, "data", at), place(k, "result", at)
            total = k.variable(k.constant(_NEUTRAL[self.kind](self.element.computed), self.element.computed))
            with k.loop("along", k.size("length")) as number:
                before = total.value
                total.value = JOINED[self.kind](before, k.memory("data")[source + number * k.size("data.step")])
                found = before if self.exclusive else total.value
                k.memory("result")[target + number * k.size("result.step")] = found


@frozen
class ScanPlan:
    """One block for one row, in so many loops. ``kind``, ``exclusive``: as in `RunningPlan`.

    ``rank``: how many loops there are; ``threads``: of a block.
    """

    kind: type[Running]
    element: ElementType
    rank: int
    exclusive: bool
    threads: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "scan"

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops over rows, both tensors in them, and along a row."""
        tensors = (*strided("data", self.element, self.rank), *strided("result", self.element, self.rank))
        return (*counted(self.rank)[1:], *tensors, *_STEPS)

    @property
    def _sums(self) -> ElementType:
        """In which sums are kept: words, so that no two threads write to one."""
        type_ = self.element.computed
        return type_ if type_.bits >= U32.bits else I32 if type_.kind == "i" else U32

    def _nothing(self, k: Kernel) -> Value:
        return k.constant(_NEUTRAL[self.kind](self.element.computed), self._sums)

    def emit(self, k: Kernel) -> None:
        """result[row, i] = data[row, 0], ..., data[row, i], joined"""
        at = k.spot(k.block(), k.sizes("size", self.rank))
        source, target = place(k, "data", at), place(k, "result", at)
        carried, join = k.variable(self._nothing(k)), JOINED[self.kind]
        laid = k.shared(self._sums, self.threads // WARP)
        with k.loop("piece", k.size("length"), step=self.threads * ITEMS) as first:
            mine = first + k.thread() * ITEMS
            sums = self._own(k, source, mine)
            before, total = self._of_block(k, sums[-1], laid)
            begin = join(carried.value, before)
            for item, one in enumerate(sums):
                with k.when(mine + item < k.size("length")):
                    here = one if not self.exclusive else sums[item - 1] if item else self._nothing(k)
                    spot = target + (mine + item) * k.size("result.step")
                    k.memory("result")[spot] = k.convert(join(begin, here), self.element.computed)
            carried.value = join(carried.value, total)

    def _own(self, k: Kernel, source: Value, mine: Value) -> list[Value]:
        """What the elements of a thread are joined to, one after the other."""
        found = list[Value]()
        for item in range(ITEMS):
            inside = mine + item < k.size("length")
            spot = k.select(inside, mine + item, k.index(0)) * k.size("data.step")
            element = k.convert(k.memory("data")[source + spot], self._sums)
            element = k.select(inside, element, self._nothing(k))
            found.append(JOINED[self.kind](found[-1], element) if found else element)
        return found

    def _of_block(self, k: Kernel, own: Value, laid: Buffer) -> tuple[Value, Value]:
        """What all threads before this one have, joined, and what all have."""
        lane, upto, distance, join = k.lane(), own, 1, JOINED[self.kind]
        while distance < WARP:
            other = k.from_lane(upto, k.convert(lane - distance, I32) & (WARP - 1))
            upto = k.select(lane >= distance, join(other, upto), upto)
            distance *= 2
        before = k.from_lane(upto, k.convert(lane - 1, I32) & (WARP - 1))
        before = k.select(lane > 0, before, self._nothing(k))
        with k.when(lane.equals(WARP - 1)):
            laid[k.warp()] = upto
        k.barrier()
        earlier, total = self._nothing(k), self._nothing(k)
        for warp in range(self.threads // WARP):
            earlier = k.select(k.warp() > warp, join(earlier, laid[warp]), earlier)
            total = join(total, laid[warp])
        k.barrier()
        return join(earlier, before), total
