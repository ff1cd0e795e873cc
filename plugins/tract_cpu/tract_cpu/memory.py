"""Which parts of the arena lie in the same place, as one is not needed any more when the other one begins.

The arena is made of slots, each as large as the largest storage that lies in it. Which storage lies where is decided
once, for all sizes; how large the slots are is computed when the symbols get their values.
"""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.dims import Dim, is_symbolic
from tract_core.frozen import frozen
from tract_cpu.lower.program import Program, touched
from tract_cpu.lower.views import Kind


@frozen
class ArenaPlan:
    """``slot_of``: for each storage of the arena, its slot. ``slots``: the sizes of what lies in each, in bytes.

    ``stages``: for each slot, that of the run from which on its sizes are known.
    """

    slot_of: tuple[int, ...]
    slots: tuple[tuple[Dim, ...], ...]
    stages: tuple[int, ...]


def plan_arena(program: Program) -> ArenaPlan:
    """The slots for the storages of a program. A storage that nothing writes or reads lies in none, at -1."""
    lives = _lives(program)
    slot_of = [-1] * len(program.arena)
    contents: list[list[Dim]] = []
    stages: list[int] = []
    free_from: list[int] = []
    for number in sorted(lives, key=lambda one: lives[one]):
        first, last = lives[number]
        size = program.arena[number]
        stage = program.stage_of([size])
        free = [slot for slot, step in enumerate(free_from) if step < first and stages[slot] == stage]
        slot = _best(free, contents, size)
        if slot is None:
            slot = len(contents)
            contents.append([])
            stages.append(stage)
            free_from.append(0)
        slot_of[number] = slot
        free_from[slot] = last
        if size not in contents[slot]:
            contents[slot].append(size)
    return ArenaPlan(tuple(slot_of), tuple(tuple(one) for one in contents), tuple(stages))


def _best(free: Sequence[int], contents: Sequence[Sequence[Dim]], size: Dim) -> int | None:
    """The slot that grows least: one that held this size, else the smallest that is large enough, else the largest."""
    for slot in free:
        if size in contents[slot]:
            return slot
    known = {slot: max(map(int, contents[slot])) for slot in free if not any(map(is_symbolic, contents[slot]))}
    if not isinstance(size, int) or not known:
        return free[0] if free else None
    large = [slot for slot, held in known.items() if held >= size]
    return min(large, key=known.__getitem__) if large else max(known, key=known.__getitem__)


def _lives(program: Program) -> dict[int, tuple[int, int]]:
    """For each storage of the arena, from which step to which its content counts.

    That is from the first to the last one that touches it. What a loop touches and others touch too has to stay as it
    is as long as the loop goes round.
    """
    lives: dict[int, tuple[int, int]] = {}
    for place, step in enumerate(program.steps):
        for storage in touched(step):
            if storage.kind is Kind.ARENA:
                first, _ = lives.get(storage.number, (place, place))
                lives[storage.number] = (first, place)
    for view in program.outputs:
        if view is not None and view.storage.kind is Kind.ARENA:
            lives[view.storage.number] = (lives[view.storage.number][0], len(program.steps))
    for loop in program.loops:  # what is inside of another loop comes behind it, and its ends are inside too
        for number, (first, last) in lives.items():
            if first <= loop.last and last >= loop.first and not (loop.first <= first and last <= loop.last):
                lives[number] = (min(first, loop.first), max(last, loop.last))
    return lives
