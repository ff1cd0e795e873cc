"""Where the tensors of a program lie in one piece of memory: what `plan_arena` decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.dims import Dim


@frozen
class ArenaPlan:
    """``slot_of``: for each storage of the arena, its slot; ``offset_of``: where in it, in bytes, it begins.

    ``slots``: the sizes of what begins each slot, in bytes; the largest is its own. ``stages``: for each slot, that of
    the run from which on its sizes are known. A storage that nothing writes or reads lies in none, at -1.
    """

    slot_of: tuple[int, ...]
    offset_of: tuple[Dim, ...]
    slots: tuple[tuple[Dim, ...], ...]
    stages: tuple[int, ...]

    def text(self) -> str:
        """A line for each slot, with its size and the stage from which on that is known, and each that lies in it."""
        lines = list[str]()
        for slot, (sizes, stage) in enumerate(zip(self.slots, self.stages, strict=True)):
            since = f" from stage {stage} on" if stage else ""
            lines.append(f"slot {slot}: the largest of {', '.join(map(str, sizes))} bytes{since}")
            inside = [number for number, other in enumerate(self.slot_of) if other == slot]
            lines += [f"    arena[{number}] at {self.offset_of[number]}" for number in inside]
        lines += [f"arena[{number}] is never used" for number, slot in enumerate(self.slot_of) if slot < 0]
        return "".join(f"{line}\n" for line in lines)
