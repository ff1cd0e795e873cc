"""Running sums: rows side by side, as vectors where these lie beside each other, each summed from begin to end."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Memory, Signature, Size, Sizes

SIDE_BY_SIDE = 8
"""How many rows or vectors of rows are summed at once, to hide how long an addition takes."""


@frozen
class RunningPlan:
    """``outer``: how many loops there are over rows. ``lanes``: how many rows a vector holds, 0 for single numbers.

    ``exclusive``: whether each sum leaves its own element out. ``masked``: whether rows that fill no vector are summed
    in one with a mask, else one by one.
    """

    element: ElementType
    outer: int
    lanes: int
    masked: bool
    exclusive: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "running"

    @property
    def block(self) -> int:
        """How many rows one task sums."""
        return max(self.lanes, 1) * SIDE_BY_SIDE

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        tensors = Memory("source", self.element), Memory("target", self.element)
        return Signature.of(*tensors, Size("size"), Sizes("steps", 2), Each.loop("outer", self.outer, 2))

    def emit(self, k: Kernel) -> None:
        """y[row, i] = x[row, 0] + ... + x[row, i]"""
        running = _Running(self, k)
        with k.loop("task", k.end, k.begin) as task:
            running.rows(task)


class _Running:
    """The sums while they are written. Places are pairs, in the input and in the output."""

    def __init__(self, plan: RunningPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        taken = plan.signature.taken(k)
        self._places = (taken.memory("source"), taken.memory("target"))
        self._size, self._steps = taken.size("size"), taken.sizes("steps")
        # For each loop over rows: its size, and how far input and output move.
        self._outer = [(one.size("size"), one.sizes("strides")) for one in taken.each("outer")]

    def rows(self, task: Value) -> None:
        """Neighbouring rows of the last loop."""
        k, plan = self.k, self.plan
        count, strides = self._outer[-1]
        blocks = (count + (plan.block - 1)) // plan.block
        number, first = task // blocks, (task % blocks) * plan.block
        places = self._moved(self._places, first, strides)
        for size, far in reversed(self._outer[:-1]):
            places, number = self._moved(places, number % size, far), number // size
        left, lanes = count - first, max(plan.lanes, 1)
        with k.either(left >= plan.block) as (then, otherwise):
            with then:
                spots = [self._moved(places, k.index(n * lanes), strides) for n in range(SIDE_BY_SIDE)]
                self._sum(spots, plan.lanes, None)
            with otherwise:
                whole = left if plan.masked else left - left % lanes
                with k.loop("rows", whole, step=lanes) as row:
                    mask = k.mask(left - row, lanes) if plan.masked else None
                    self._sum([self._moved(places, row, strides)], plan.lanes, mask)
                with k.loop("row", left, whole) as row:
                    self._sum([self._moved(places, row, strides)], 0, None)

    def _sum(self, spots: list[tuple[Buffer, Buffer]], lanes: int, mask: Value | None) -> None:
        totals = [self.k.variable(self.k.constant(0, self.plan.element.computed, lanes)) for _ in spots]
        with self.k.loop("along", self._size) as position:
            for total, spot in zip(totals, spots, strict=True):
                source, target = self._moved(spot, position, self._steps)
                before = total.value
                total.value = before + source.vector(0, lanes, mask)
                target.put(0, before if self.plan.exclusive else total.value, mask)

    @staticmethod
    def _moved(places: tuple[Buffer, Buffer], position: Value, strides: Sequence[Value]) -> tuple[Buffer, Buffer]:
        return places[0].at(position * strides[0]), places[1].at(position * strides[1])
