"""A program, cut where a node is left to the host: what lies between is done by the device in one go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_cuda.program import Download, Hosted, Shown, Step, Upload, Work, launches_in, refuses

DeviceStep = Work | Upload | Download


@frozen
class Segment:
    """Steps on the device, in order. ``number``: which segment; ``stage``: of the run, in which it begins."""

    number: int
    stage: int
    steps: tuple[DeviceStep, ...]


def may_refuse(segment: Segment) -> bool:
    """Whether a kernel of the segment may refuse to do its work."""
    return any(refuses(launch) for launch in launches_in(segment.steps))


Piece = Segment | Hosted | Shown


def pieces_of(steps: Sequence[Step]) -> Iterator[Piece]:
    """The pieces of a program, in order."""
    number, stage, here = 0, 0, list[DeviceStep]()
    for step in [*steps, None]:
        if step is not None and not isinstance(step, Hosted | Shown):
            here.append(step)
            continue
        if here:
            yield Segment(number, stage, tuple(here))
            number, here = number + 1, []
        if step is not None:
            yield step
            stage += isinstance(step, Hosted) and bool(step.node.binds)


def host_reads(piece: Piece) -> list[OutletId]:
    """The tensors on the host that a piece reads."""
    if isinstance(piece, Hosted):
        return list(piece.node.inputs)
    if isinstance(piece, Shown):
        return list(piece.outlets)
    return [one.outlet for one in piece.steps if isinstance(one, Upload)]


def dying_after(pieces: Sequence[Piece], outputs: Sequence[OutletId]) -> list[list[OutletId]]:
    """For each piece, the tensors on the host that nobody needs behind it."""
    last: dict[OutletId, int] = {}
    for place, piece in enumerate(pieces):
        last |= dict.fromkeys(host_reads(piece), place)
    found: list[list[OutletId]] = [[] for _ in pieces]
    for outlet, place in last.items():
        if outlet not in outputs:
            found[place].append(outlet)
    return found
