"""Steps that say which step is next: loops, branches and jumps.

Their kernels are called as all others, but by one thread, and with other arguments: ``begin`` is the number of the step
itself, and ``scratch`` is where it tells how it goes on (`tract_cpu.native.executor`).

A loop moves addresses: from one iteration to the next, arguments of steps inside go on by some bytes, or there and
back. What it remembers while it runs lies among its own arguments.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import BOOL, INDEX, ElementType

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size
from tract_cpu.native.executor import FUEL, NEXT

CONTROL: Final = -1
"""The number of tasks of a step that says which one is next."""

_LOOP: Final = ("count", "body", "behind", "index", "moves")
COUNT, BODY, BEHIND, INDEX_NOW, MOVES, FIRST_MOVE = range(len(_LOOP) + 1)
"""The arguments of a loop: how many iterations there are, its first step, and the one behind its last; then the number
of the iteration, which it writes; how many addresses move, and then these."""

_MOVE: Final = ("place", "bytes", "factor", "before", "now")
PLACE, BYTES, FACTOR, BEFORE, NOW, MOVE_SIZE = range(len(_MOVE) + 1)
"""What a loop knows of an address that moves: where it is, by how many bytes it moves first, with which factor that
changes; the address before the loop, and how far it moves next, which the loop writes."""

FUEL_OF_ITERATION: Final = 1 << 10
"""How much fuel an iteration takes besides that of its steps."""


@frozen
class BeginPlan:
    """The step before the first one of a loop."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "begin"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        place, *others = _MOVE
        return Signature(tuple(map(Size, _LOOP)), rest=(Memory(place, INDEX), *map(Size, others)))

    def emit(self, k: Kernel) -> None:
        """Remember the addresses that move, and go on inside, or behind where there are no iterations."""
        loop, course = k.buffer(0, INDEX), k.scratch(INDEX)
        loop[INDEX_NOW] = k.index(0)
        with k.either(loop[COUNT] > 0) as (inside, behind):
            with inside:
                with _moves(k, loop) as move:
                    move[BEFORE] = k.at(move[PLACE])[0]
                    move[NOW] = move[BYTES]
                course[NEXT] = loop[BODY]
            with behind:
                course[NEXT] = loop[BEHIND]


@frozen
class RepeatPlan:
    """The last step of a loop."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "loop"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Memory("loop", INDEX))

    def emit(self, k: Kernel) -> None:
        """Move the addresses and go on with the next iteration, or bring them back and go on behind the loop."""
        loop, course = self.signature.taken(k).memory("loop"), k.scratch(INDEX)
        done = loop[INDEX_NOW] + 1
        loop[INDEX_NOW] = done
        with k.either(done < loop[COUNT]) as (again, behind):
            with again:
                with _moves(k, loop) as move:
                    place, far = k.at(move[PLACE]), move[NOW]
                    place[0] = place[0] + far
                    move[NOW] = far * move[FACTOR]
                course[NEXT] = loop[BODY]
                course[FUEL] = course[FUEL] - FUEL_OF_ITERATION
            with behind:
                with _moves(k, loop) as move:
                    k.at(move[PLACE])[0] = move[BEFORE]
                course[NEXT] = loop[BEHIND]


@frozen
class BranchPlan:
    """Goes on elsewhere where a boolean is ``jumps``, else with the step behind."""

    jumps: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "branch"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Memory("condition", BOOL), Size("elsewhere"))

    def emit(self, k: Kernel) -> None:
        """The boolean comes first, then the step."""
        taken = self.signature.taken(k)
        condition, elsewhere = taken.memory("condition")[0], taken.size("elsewhere")
        behind = k.begin + 1
        wanted = condition if self.jumps else ~condition
        k.scratch(INDEX)[NEXT] = k.select(wanted, elsewhere, behind)


@frozen
class JumpPlan:
    """Goes on elsewhere."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "jump"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Size("elsewhere"))

    def emit(self, k: Kernel) -> None:
        """The step is the argument."""
        k.scratch(INDEX)[NEXT] = self.signature.taken(k).size("elsewhere")


@frozen
class CountPlan:
    """Tells a loop how many iterations it has. ``limit``: the type of their number.

    ``least``, ``most``: how many there have to be, and how many there may be. ``announced``: whether there have to be
    as many as an argument says, as there is memory for what they give.
    """

    limit: ElementType
    least: int
    most: int
    announced: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "count"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        announced = [Size("wanted")] if self.announced else []
        told = Memory("status", INDEX), Memory("limit", self.limit), Memory("begins", BOOL)
        return Signature.of(*told, Memory("loop", INDEX), *announced)

    def emit(self, k: Kernel) -> None:
        """Where to say that the number does not fit; it, a boolean without which there are none, and the loop."""
        taken = self.signature.taken(k)
        status, limit, begins, loop = map(taken.memory, ("status", "limit", "begins", "loop"))
        number = k.convert(limit[0], INDEX)
        count = k.select(begins[0] & (number > 0), number, k.index(0))
        loop[COUNT] = count
        wrong = (count > self.most) | (count < self.least)
        if self.announced:
            wrong = wrong | count.differs(taken.size("wanted"))
        with k.when(wrong):
            status[0] = k.index(1)


@frozen
class EndPlan:
    """Makes an iteration the last one where a boolean does not hold."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "end"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Memory("goes_on", BOOL), Memory("loop", INDEX))

    def emit(self, k: Kernel) -> None:
        """The boolean comes first, then the loop."""
        taken = self.signature.taken(k)
        goes_on, loop = taken.memory("goes_on"), taken.memory("loop")
        with k.when(~goes_on[0]):
            loop[COUNT] = loop[INDEX_NOW] + 1


@frozen
class NumberPlan:
    """Writes the number of the iteration, as an element of a type."""

    element: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "number"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Memory("loop", INDEX), Memory("target", self.element))

    def emit(self, k: Kernel) -> None:
        """The loop comes first, then where to write."""
        taken = self.signature.taken(k)
        loop, target = taken.memory("loop"), taken.memory("target")
        target[0] = k.convert(loop[INDEX_NOW], self.element)


@frozen
class SkipPlan:
    """Counts iterations, and says whether this one is to be skipped."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "skip"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Memory("count", INDEX), Memory("skipped", BOOL), Size("skip"))

    def emit(self, k: Kernel) -> None:
        """How many iterations there were, and where to say it; then how many are skipped, by whoever does task 0."""
        taken = self.signature.taken(k)
        count, skipped, skip = taken.memory("count"), taken.memory("skipped"), taken.size("skip")
        with k.loop("task", k.end, k.begin):
            position = count[0] + 1
            count[0] = position
            skipped[0] = position <= skip


@contextmanager
def _moves(k: Kernel, loop: Buffer) -> Generator[Buffer]:
    """For each address that moves, what the loop knows of it."""
    with k.loop("move", loop[MOVES]) as number:
        yield loop.at(number * MOVE_SIZE + FIRST_MOVE)
