"""Kernels for what is outside of the signal of a stream: before its begin, and from its end on.

Places are counted in the pulse: of 64 bits, as streams go on for long. `NOT_YET` stands for an end
that nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter
from tract_cuda.program import NOT_YET
from tract_llvm.language.function import where
from tract_llvm.language.types import I64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_pulse.cuda.position import from_here

Read = Callable[[Value], Value]
"""What is in the pulse at a place of the stream."""

SIGNAL = (Parameter("begin"), Parameter("end"), Parameter("position", I64), Parameter("step"))
"""Where in its stream the signal begins and ends, where the pulse begins, and how far apart its positions lie."""


@frozen
class _Ends:
    """Where the signal is in a pulse of ``count`` positions."""

    k: Kernel
    count: Value

    @property
    def begin(self) -> Value:
        """Its first place, which may be outside."""
        return from_here(self.k, "begin")

    @property
    def endless(self) -> Value:
        """Whether it has not ended."""
        return self.k.size("end") < NOT_YET + 1

    @property
    def end(self) -> Value:
        """The place behind its last one; that behind the pulse where there is none."""
        return where(self.endless, self.count, from_here(self.k, "end"))

    def bounded(self, spot: Value, last: Value) -> Value:
        """The nearest place from 0 to ``last``."""
        low = where(spot < 0, spot.like(0), spot)
        return where(low < last, low, last)

    def part(self) -> tuple[Value, Value]:
        """The places of the pulse that are in the signal: the first one, and that behind the last one."""
        return self.bounded(self.begin, self.count), self.bounded(self.end, self.count)

    def image(self, spot: Value) -> Value:
        """The place whose mirror image a place outside of the signal is; one outside of the pulse means nothing."""
        far = spot - self.begin
        size = self.end - self.begin
        period = where(size > 1, (size - 1) * 2, size.like(1))
        rest = far % period
        rest = where(rest < 0, rest + period, rest)
        inside = where(rest < period - rest, rest, period - rest)
        inside = where(size > 1, inside, inside.like(0))
        found = where(self.endless, where(far < 0, -far, far), inside)
        return self.bounded(found + self.begin, self.count - 1)


@frozen
class EndsPlan:
    """One thread for one element. ``rank``: how many loops there are, ``along`` being that over the positions.

    ``front``, ``behind``: what is there, ``"value"``, ``"edge"`` or ``"mirror"``; ``None`` where nothing changes.
    """

    element: ElementType
    rank: int
    along: int
    front: str | None
    behind: str | None

    name = "ends"
    threads = THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, the pulse, the result, the signal; a value, and the last slice of the signal, as far as wanted."""
        tensors = (*strided("x", self.element, self.rank), *strided("result", self.element, self.rank))
        value = (Parameter("value", self.element),) if "value" in (self.front, self.behind) else ()
        last = (*strided("last", self.element, self.rank), Parameter("there", I64)) if self.behind == "edge" else ()
        return (*counted(self.rank), *tensors, *SIGNAL, *value, *last)

    def emit(self, k: Kernel) -> None:
        """result[.., i, ..] = x[.., i, ..] where i is in the signal"""
        with position(k, self.rank) as at:
            ends = _Ends(k, k.convert(k.size(f"size{self.along}"), I64))
            spot, base = k.convert(at[self.along], I64), place(k, "x", at) - at[self.along] * k.size("step")

            def read(there: Value) -> Value:
                return k.memory("x")[base + k.convert(there, k.positions) * k.size("step")]

            found = self._behind(k, ends, spot, read, at)
            k.memory("result")[place(k, "result", at)] = found

    def _behind(self, k: Kernel, ends: _Ends, spot: Value, read: Read, at: Sequence[Value]) -> Value:
        found = self._front(k, ends, spot, read)
        if self.behind is None:
            return found
        other = found
        if self.behind == "value":
            other = k.memory("value")[0]
        elif self.behind == "mirror":
            other = self._front(k, ends, ends.image(spot), read)
        else:
            first, stop = ends.part()
            last = k.memory("last")[place(k, "last", at)]
            other = where(k.memory("there")[0].differs(0), last, found)
            other = where(first < stop, read(ends.bounded(stop - 1, ends.count - 1)), other)
        return where(ends.endless | (spot < ends.end), found, other)

    def _front(self, k: Kernel, ends: _Ends, spot: Value, read: Read) -> Value:
        if self.front is None:
            return read(spot)
        if self.front == "value":
            return where(spot < ends.begin, k.memory("value")[0], read(spot))
        if self.front == "mirror":
            return read(where(spot < ends.begin, ends.image(spot), spot))
        return read(where((spot < ends.begin) & (ends.begin < ends.count), ends.begin, spot))


@frozen
class LastSlicePlan:
    """One thread for one element of a slice: the last one of the signal so far. ``rank``: how many loops there are."""

    element: ElementType
    rank: int

    name = "last_slice"
    threads = THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops; the pulse, the slice before, the new one; the signal; whether there was one, and is one now."""
        tensors = [one for name in ("x", "last", "result") for one in strided(name, self.element, self.rank)]
        there = (Parameter("there", I64), Parameter("is", I64))
        return (*counted(self.rank), *tensors, *SIGNAL, Parameter("size"), *there)

    def emit(self, k: Kernel) -> None:
        """result[.., 0, ..] = x[.., i, ..], i being the last place of the signal"""
        with position(k, self.rank) as at:
            first, stop = _Ends(k, k.convert(k.size("size"), I64)).part()
            result, target = k.memory("result"), place(k, "result", at)
            with k.either(first < stop) as (then, otherwise):
                with then:
                    spot = k.convert(stop - 1, k.positions)
                    result[target] = k.memory("x")[place(k, "x", at) + spot * k.size("step")]
                    self._say(k, k.constant(1, I64))
                with otherwise:
                    result[target] = k.memory("last")[place(k, "last", at)]
                    self._say(k, k.memory("there")[0])

    def _say(self, k: Kernel, there: Value) -> None:
        with k.when((k.block() * THREADS + k.thread()).equals(0)):
            k.memory("is")[0] = there
