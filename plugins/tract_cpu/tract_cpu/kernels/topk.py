"""The best elements of each row, in order: each element is compared with the worst one kept so far.

What is kept is in the outputs from the beginning, sorted. Where a row lies in one piece, vectors are looked at first:
most hold nothing that is good enough.
"""

from __future__ import annotations

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Variable, where
from tract_llvm.language.types import INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Memory, Signature, Size, Sizes


@frozen
class TopkPlan:
    """``outer``: how many loops there are over rows. ``lanes``: of vectors that are looked at, 0 for none.

    ``count``: the type in which the run says how many are wanted; the kernel refuses where that was not announced.
    ``largest``: whether the largest elements are wanted, else the smallest ones.
    """

    element: ElementType
    count: ElementType
    largest: bool
    outer: int
    lanes: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "topk"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        tensors = Memory("source", self.element), Memory("values", self.element), Memory("positions", INDEX)
        return Signature.of(
            Size("size"),
            Size("kept"),
            Memory("status", INDEX),
            Memory("asked", self.count),
            *tensors,
            Sizes("steps", len(tensors)),
            Each.loop("outer", self.outer, len(tensors)),
        )

    def emit(self, k: Kernel) -> None:
        """Task by task, one row."""
        taken = self.signature.taken(k)
        size, kept = taken.size("size"), taken.size("kept")
        status, asked = taken.memory("status"), taken.memory("asked")
        places = tuple(map(taken.memory, ("source", "values", "positions")))
        steps = tuple(taken.sizes("steps"))
        outer = [(one.size("size"), one.sizes("strides")) for one in taken.each("outer")]
        with k.either(k.convert(asked[0], INDEX).equals(kept)) as (then, otherwise):
            with then, k.when(kept > 0), k.loop("task", k.end, k.begin) as task:
                row, number = places, task
                for one, strides in reversed(outer):
                    position, number = number % one, number // one
                    row = tuple(place.at(position * stride) for place, stride in zip(row, strides, strict=True))
                _Row(self, k, (size, kept), row, steps).write()
            with otherwise:
                status[0] = k.index(1)


class _Row:
    """One row while it is written. ``sizes``: how many elements it has, and how many of them are kept."""

    def __init__(
        self,
        plan: TopkPlan,
        k: Kernel,
        sizes: tuple[Value, Value],
        places: tuple[Buffer, ...],
        steps: tuple[Value, ...],
    ) -> None:
        self.plan, self.k = plan, k
        self._size, self._wanted = sizes
        self._source, self._values, self._positions = places
        self._step, self._value_step, self._position_step = steps
        self._count = k.variable(k.index(0))

    def write(self) -> None:
        """Go through the row."""
        k, lanes = self.k, self.plan.lanes
        whole = self._size - self._size % lanes if lanes else k.index(0)
        if lanes:
            with k.loop("vector", whole, step=lanes) as begin:
                found = self._better(self._source.vector(begin, lanes), self._worst().splat(lanes))
                with k.when((self._count.value < self._wanted) | k.any(found)):
                    self._look(begin, begin + lanes)
        self._look(whole, self._size)

    def _look(self, begin: Value, end: Value) -> None:
        """Look at the elements one by one."""
        with self.k.loop("element", end, begin) as position:
            x = self._source[position * self._step]
            with self.k.when((self._count.value < self._wanted) | self._better(x, self._worst())):
                self._insert(x, position)

    def _insert(self, x: Value, position: Value) -> None:
        """Put an element behind those that are as good or better; the last one drops out."""
        k, count = self.k, self._count
        place = k.variable(k.smaller(count.value, self._wanted - 1))
        with k.loop_while("move", lambda: self._is_worse_before(place, x)):
            before = place.value - 1
            self._put(
                place.value, self._values[before * self._value_step], self._positions[before * self._position_step]
            )
            place.value = before
        self._put(place.value, x, position)
        count.value = k.smaller(count.value + 1, self._wanted)

    def _is_worse_before(self, place: Variable, x: Value) -> Value:
        some = place.value > 0
        before = where(some, place.value - 1, 0)
        return some & self._better(x, self._values[before * self._value_step])

    def _put(self, place: Value, x: Value, position: Value) -> None:
        self._values[place * self._value_step] = x
        self._positions[place * self._position_step] = position

    def _worst(self) -> Value:
        """The last one, once there are as many as wanted."""
        return self._values[(self._wanted - 1) * self._value_step]

    def _better(self, x: Value, other: Value) -> Value:
        """Whether ``x`` comes before another; what is not a number counts as the largest."""
        if self.plan.largest:
            found, none, there = x > other, x.differs(x), other
        else:
            found, none, there = x < other, other.differs(other), x
        return found | (none & there.equals(there)) if x.type.kind == "f" else found
