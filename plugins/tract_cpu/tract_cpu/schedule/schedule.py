"""From the steps that were chosen to the program: one order, one memory for what lies in another, loops that move."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.isa import Isa
from tract_llvm.program.storages import Address

from tract_cpu.draft.draft import Drafted
from tract_cpu.program.arguments import begun
from tract_cpu.program.places import Places
from tract_cpu.program.program import ArgumentPlace, NativeStep, Program, ProgramLoop, Step
from tract_cpu.schedule.rows import joined_by_rows


def schedule(drafted: Drafted, isa: Isa, threads: int) -> Program:
    """The program, with convolutions computed row by row where that keeps what is between them in the cache."""
    return put_together(joined_by_rows(drafted, isa, threads))


def put_together(drafted: Drafted) -> Program:
    """Steps as a program, each as it was chosen. What lies in another storage is named by its place there."""
    places, chosen = drafted.places, (*drafted.steps, *drafted.last_steps)
    loops = _moving(drafted.loops, places, chosen) if drafted.loops else []
    steps = [places.step(step) for step in chosen]
    for loop in loops:
        steps[loop.first] = begun(loop, steps[loop.first])
    return Program(
        tuple(steps),
        drafted.constants,
        drafted.arena,
        tuple(places.view(view) for view in drafted.outputs),
        places.views(drafted.views),
        drafted.blocked,
        tuple(loops),
        drafted.inlined,
        drafted.kept,
        drafted.stages,
        {symbol: number for number, stage in enumerate(drafted.stages, 1) for symbol in stage.symbols},
    )


def _moving(loops: Sequence[ProgramLoop], places: Places, steps: Sequence[Step]) -> list[ProgramLoop]:
    """Loops with the addresses that move in them."""
    found = list(loops)
    for place, step in enumerate(steps):
        for number, address in _addresses(step):
            for move in places.root(address.storage).moves:
                found[move.loop] = found[move.loop].moving(ArgumentPlace(place, number), move.step, move.back)
    return found


def _addresses(step: Step) -> list[tuple[int, Address]]:
    """The addresses among the arguments of a step, with their numbers."""
    if not isinstance(step, NativeStep):
        return []
    return [(number, one) for number, one in enumerate(step.arguments) if isinstance(one, Address)]
