"""What stands before and behind the signal of a stream: positions are overwritten where they are outside."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Memory, Signature, Size
from tract_cpu.program.arguments import arguments, each_loop
from tract_cpu.program.eventual import ENDLESS
from tract_cpu.program.program import Argument, NativeStep
from tract_llvm.language.types import INDEX, ElementType
from tract_llvm.language.values import Value
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.views import View

from tract_core.frozen import frozen

BEFORE_ALL: Final = -ENDLESS
"""A position before all others."""


@frozen
class PlacedPulse:
    """A pulse in memory, of a stream along ``axis``. ``position``: where the number of its first position stands."""

    view: View
    axis: int
    position: View

    def laid(self, source: View, first: Argument, last: Argument) -> NativeStep:
        """The call that writes ``source`` over the positions from ``first`` up to and without ``last``.

        Its first position along the axis comes to ``first``; one that is stretched there is written everywhere.
        """
        return self._step("next", source, [first, last])

    def continued(self, last: Argument) -> NativeStep:
        """The call that writes the position ``last`` over all before it, if it is in this pulse."""
        return self._step("edge", self.view, [BEFORE_ALL, last])

    def mirrored(self, first: Argument, last: Argument, signal: tuple[Argument, Argument]) -> NativeStep:
        """The call that writes mirror images over positions. ``signal``: where it begins, and where it ends."""
        return self._step("mirror", self.view, [first, last, *signal])

    def kept(self, target: View, signal: tuple[Argument, Argument]) -> NativeStep:
        """The call that copies the last position of the signal so far, if it is in this pulse, to memory for one."""
        return self._step("keep", target, list(signal))

    def _step(self, way: str, other: View, bounds: list[Argument]) -> NativeStep:
        view, other, axis = self.view.as_bits(), other.as_bits(), self.axis
        loops = _around(view, other, axis)
        plan = LayPlan(view.element, way, len(loops))
        given = arguments(
            plan,
            position=self.position.address,
            **dict(zip(("first", "last", "begin", "end"), bounds, strict=False)),
            count=view.shape[axis],
            pulse=view.address,
            stride=view.strides[axis],
            other=other.address,
            step=other.strides[axis],
            loops=each_loop(loops),
        )
        written = other if way == "keep" else view
        return NativeStep(plan, given, 1, (), (written.storage,))


def _around(view: View, other: View, axis: int) -> list[StridedLoop]:
    """The loops over all axes but that of the stream."""
    shape, *strides = ([*one[:axis], *one[axis + 1 :]] for one in (view.shape, view.strides, other.strides))
    return collapsed(shape, strides)


@frozen
class LayPlan:
    """``way``: which positions are written, and from where. ``loops``: around each of them."""

    element: ElementType
    way: str
    loops: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "lay"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        signal = [Size("begin"), Size("end")] if self.way == "mirror" else []
        tensors = Memory("pulse", self.element), Size("stride"), Memory("other", self.element), Size("step")
        position = Memory("position", INDEX)
        return Signature.of(
            position, Size("first"), Size("last"), *signal, Size("count"), *tensors, Each.loop("loops", self.loops, 2)
        )

    def emit(self, k: Kernel) -> None:
        """pulse[i - position] = source[the place for i], for every i from ``first`` on and before ``last``."""
        taken = self.signature.taken(k)
        position, first, last = taken.memory("position")[0], taken.size("first"), taken.size("last")
        signal = [taken.size("begin"), taken.size("end")] if self.way == "mirror" else []
        count = taken.size("count")
        pulse, stride, other, step = (
            taken.memory("pulse"),
            taken.size("stride"),
            taken.memory("other"),
            taken.size("step"),
        )
        loops = [(one.size("size"), *one.sizes("strides")) for one in taken.each("loops")]

        def copied(place: Value, there: Value) -> None:
            """One position of the pulse, from one of the other tensor, or to it."""
            with ExitStack() as nest:
                here, beside = pulse.at(place * stride), other.at(there * step)
                for size, one, another in loops:
                    number = nest.enter_context(k.loop("around", size))
                    here, beside = here.at(number * one), beside.at(number * another)
                target, source = (beside, here) if self.way == "keep" else (here, beside)
                target[0] = source[0]

        begin, end = _between(k, first - position, count), _between(k, last - position, count)
        if self.way == "keep":
            with k.when(begin < end):
                copied(end - 1, k.index(0))
        elif self.way == "edge":
            with k.loop("place", k.select(end < count, end, k.index(0))) as place:
                copied(place, end)
        else:
            with k.loop("place", end, begin) as place:
                there = place + position - first
                if self.way == "mirror":
                    image = _mirrored(k, place + position - signal[0], signal[1] - signal[0]) + signal[0] - position
                    there = _between(k, image, count - 1)  # one outside of the pulse means nothing
                copied(place, there)


def _between(k: Kernel, place: Value, last: Value) -> Value:
    return k.smaller(k.select(place < 0, k.index(0), place), last)


def _mirrored(k: Kernel, place: Value, size: Value) -> Value:
    """Where in a signal of ``size`` positions the image of a place outside of it is: there and back is a period."""
    period = k.select(size > 1, (size - 1) * 2, k.index(1))
    rest = place % period
    rest = k.select(rest < 0, rest + period, rest)
    return k.select(rest < size, rest, period - rest)
