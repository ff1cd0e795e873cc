"""What the model and the bodies in it share while their program is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final, TypeVar

from tract_llvm.program.storages import Kind, Storage
from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_cpu.draft.constants import Makers
from tract_cpu.program.form import Blocked
from tract_cpu.program.kept import Kept
from tract_cpu.program.places import Places, TensorPart
from tract_cpu.program.program import (
    ArgumentPlace,
    Inlined,
    NativeStep,
    ProgramLoop,
    RunStage,
    Step,
    StepNumber,
)


@dataclass(slots=True)
class Draft:
    """What the model and the bodies in it share while the program is made."""

    steps: list[Step] = field(default_factory=list[Step])
    constants: list[Array | Future[Array]] = field(default_factory=list["Array | Future[Array]"])
    makers: Makers = field(default_factory=Makers)
    arena: list[Dim] = field(default_factory=list[Dim])
    places: Places = field(default_factory=Places)
    loops: list[ProgramLoop] = field(default_factory=list[ProgramLoop])
    inlined: list[Inlined] = field(default_factory=list[Inlined])
    kept: list[Kept] = field(default_factory=list[Kept])
    last_steps: list[NativeStep] = field(default_factory=list[NativeStep])
    stages: list[RunStage] = field(default_factory=list[RunStage])
    convs: list[Any] = field(default_factory=list[Any])
    models: int = 0
    """How many models there are by now, with bodies."""

    def room(self, size: Dim) -> Storage:
        """Memory of the arena, of so many bytes."""
        self.arena.append(size)
        return Storage(Kind.ARENA, len(self.arena) - 1)

    def part(self, part: TensorPart) -> Storage:
        """A storage that lies in another one."""
        found = self.room(0)
        self.places.parts[found] = part
        return found

    def mark(self) -> tuple[int, ...]:
        """Where it can be brought back to."""
        return tuple(map(len, self._lists()))

    def back_to(self, mark: tuple[int, ...]) -> None:
        """Forget what was added since."""
        for one, size in zip(self._lists(), mark, strict=True):
            del one[size:]

    def _lists(self) -> list[list[Any]]:
        # Storages are numbered for good, so that what names one that is forgotten names no other.
        return [self.steps, self.constants, self.loops, self.inlined, self.kept, self.last_steps, self.convs]


@frozen
class Drafted:
    """All steps with their kernels, in the order of groups, before they are put together as a program.

    ``last_steps``: what is done behind all others. ``places``: storages that lie in others, which steps still name.
    ``convs``: what `tract_cpu.schedule.rows` may join. The other fields are those of `Program`.
    """

    steps: tuple[Step, ...]
    last_steps: tuple[NativeStep, ...]
    constants: tuple[Array, ...]
    arena: tuple[Dim, ...]
    places: Places
    outputs: tuple[View | None, ...]
    views: Mapping[OutletId, View | None]
    blocked: Mapping[OutletId, Blocked]
    loops: tuple[ProgramLoop, ...]
    inlined: tuple[Inlined, ...]
    kept: tuple[Kept, ...]
    stages: tuple[RunStage, ...]
    convs: tuple[Any, ...]

    def without(self, gone: Collection[int]) -> Drafted:
        """Without some steps, by their places. Nobody names one of them."""
        if not gone:
            return self
        behind = list(accumulate((place not in gone for place in range(len(self.steps))), initial=0))
        return replace(
            self,
            steps=tuple(_renumbered(step, behind) for place, step in enumerate(self.steps) if place not in gone),
            last_steps=tuple(_renumbered(step, behind) for step in self.last_steps),
            loops=tuple(replace(one, first=behind[one.first], last=behind[one.last]) for one in self.loops),
            inlined=tuple(replace(one, first=behind[one.first], last=behind[one.last]) for one in self.inlined),
            stages=tuple(replace(one, place=behind[one.place]) for one in self.stages),
        )


StepT = TypeVar("StepT", bound=Step)


def _renumbered(step: StepT, behind: Sequence[int]) -> StepT:
    """A step that names others by their new places. ``behind``: how many are left before each old place."""
    if not isinstance(step, NativeStep):
        return step
    named = [(number, one) for number, one in enumerate(step.arguments) if isinstance(one, _NUMBERED)]
    if not named:
        return step
    arguments = list(step.arguments)
    for number, one in named:
        arguments[number] = replace(one, place=behind[one.place])
    return replace(step, arguments=tuple(arguments))


_NUMBERED: Final = (StepNumber, ArgumentPlace)
"""Arguments that name a step by its number."""
