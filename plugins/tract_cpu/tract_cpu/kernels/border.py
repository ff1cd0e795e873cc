"""One number around the elements of tensors, before and after each axis."""

from __future__ import annotations

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Each, Memory, Signature, Size


@frozen
class BorderPlan:
    """``element``, ``fill``: what is written; ``lanes``: of a vector; ``axes``: how many axes have a border."""

    element: ElementType
    lanes: int
    axes: int
    fill: int = 0

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "border"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        sizes = Size("before"), Size("inside"), Size("after"), Size("stride")
        return Signature.of(Memory("tensor", self.element), Size("whole"), Each.of("axes", self.axes, *sizes))

    def emit(self, k: Kernel) -> None:
        """Task by task, all that is around one tensor of a row of them, from the outermost axis in."""
        border = _Border(self, k)
        with k.loop("task", k.end, k.begin) as task:
            border.around(border.memory.at(task * border.whole), 0)


class _Border:
    """The border while it is written. ``whole``: elements from one tensor to the next."""

    def __init__(self, plan: BorderPlan, k: Kernel) -> None:
        self._plan, self._k = plan, k
        taken = plan.signature.taken(k)
        self.memory, self.whole = taken.memory("tensor"), taken.size("whole")
        # For each axis: how many positions are before, inside and after, and how many elements each has.
        names = ("before", "inside", "after", "stride")
        self._axes = [tuple(map(one.size, names)) for one in taken.each("axes")]

    def around(self, at: Buffer, axis: int) -> None:
        """What is before and after an axis, and inside around the axes that follow."""
        before, inside, after, each = self._axes[axis]
        self._fill(at, before * each)
        at = at.at(before * each)
        if axis + 1 < self._plan.axes:
            with self._k.loop(f"inside{axis}", inside) as position:
                self.around(at.at(position * each), axis + 1)
        self._fill(at.at(inside * each), after * each)

    def _fill(self, at: Buffer, count: Value) -> None:
        number = self._k.constant(self._plan.fill, self._plan.element.computed)
        Run(self._plan.lanes, masked=False).fill(self._k, number, at, count)
