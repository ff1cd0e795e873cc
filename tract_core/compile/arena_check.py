"""What must hold of an arena: no two tensors that count at the same time share memory, whatever the sizes are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tract_core.compile.arena import Lives
from tract_core.compile.arena_plan import ArenaPlan
from tract_core.dims import Dim, evaluate, symbols_of
from tract_core.errors import DimError
from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel

SIZES: Final = ((1, 0), (2, 0), (0, 0), (7, 0), (3, 2), (64, 1), (5, 37))
"""What symbols are in one sample: the first one, and by how much each further one is larger."""

LARGE: Final = ((1000, 0), (997, 24))
"""Those under which all positions that operators ask for are surely there."""


def sampled(
    model: TypedModel, symbols: frozenset[str], patterns: Sequence[tuple[int, int]] = SIZES
) -> Iterator[dict[str, int]]:
    """Values of symbols, and of those that follow from them."""
    roots = sorted(model.symbols.definitions.roots(symbols))
    for first, step in patterns if roots else patterns[:1]:
        values = {name: first + step * number for number, name in enumerate(roots)}
        model.symbols.definitions.complete(values)
        yield values


def arena_faults(
    plan: ArenaPlan, sizes: Sequence[Dim], lives: Lives, alignment: int, samples: Iterator[Mapping[str, int]]
) -> Iterator[str]:
    """What is wrong with an arena, a sentence each; nothing if all is well.

    ``sizes``: of all storages, in bytes; ``lives``: of those that any step touches; ``samples``: values of symbols.
    """
    there = (len(plan.slot_of), len(plan.offset_of))
    if there != (len(sizes), len(sizes)) or len(plan.slots) != len(plan.stages):
        yield f"the arena has places for {there} storages, of which there are {len(sizes)}"
        return
    nowhere = [number for number in lives if not 0 <= plan.slot_of[number] < len(plan.slots)]
    yield from (f"arena[{number}] lies in no slot" for number in nowhere)
    if not nowhere:
        for values in samples:
            places = _places(plan, sizes, lives, values)
            told = ", ".join(f"{name}={value}" for name, value in values.items())
            found = [*_outside(plan, places, alignment, values), *_shared(places)]
            if found:
                yield from (f"{what} with {told}" if told else what for what in found)
                return


@frozen
class _Place:
    """Where a storage lies in its slot, in bytes, and from which step to which it counts."""

    number: int
    slot: int
    begin: int
    end: int
    first: int
    last: int


def _places(plan: ArenaPlan, sizes: Sequence[Dim], lives: Lives, values: Mapping[str, int]) -> list[_Place]:
    """Of storages whose sizes have values; not of those of branches that are never taken, which may be below 0."""
    found: list[_Place] = []
    for number, (first, last) in lives.items():
        begin, size = _value(plan.offset_of[number], values), _value(sizes[number], values)
        if begin is not None and size is not None and size >= 0:
            found.append(_Place(number, plan.slot_of[number], begin, begin + size, first, last))
    return sorted(found, key=lambda one: one.first)


def _value(size: Dim, values: Mapping[str, int]) -> int | None:
    """``None`` where it has a symbol that data give, or is refused: such a run ends before its memory is used."""
    try:
        return evaluate(size, values) if symbols_of(size) <= values.keys() else None
    except DimError:
        return None


def _outside(plan: ArenaPlan, places: Sequence[_Place], alignment: int, values: Mapping[str, int]) -> Iterator[str]:
    ends = [_end(sizes, values) for sizes in plan.slots]
    for one in places:
        end = ends[one.slot]
        if one.begin < 0 or (end is not None and one.end > end):
            yield f"arena[{one.number}] goes from byte {one.begin} to {one.end} of slot {one.slot}, which ends before"
        if one.begin % alignment:
            yield f"arena[{one.number}] begins at byte {one.begin}, which is no multiple of {alignment}"


def _end(sizes: Sequence[Dim], values: Mapping[str, int]) -> int | None:
    """Where a slot ends, in bytes, which is the largest of its sizes; ``None`` where one of them is refused."""
    known = [_value(size, values) for size in sizes if symbols_of(size) <= values.keys()]
    return None if None in known else max((size for size in known if size is not None), default=0)


def _shared(places: Sequence[_Place]) -> Iterator[str]:
    """Pairs that share a byte while both count. ``places``: by their first steps."""
    here: list[_Place] = []
    for one in places:
        here = [other for other in here if other.last >= one.first]
        for other in here:
            begin, end = max(one.begin, other.begin), min(one.end, other.end)
            if other.slot == one.slot and begin < end:
                both = f"arena[{other.number}] and arena[{one.number}] share bytes {begin} to {end}"
                yield f"{both} of slot {one.slot}, and both count at step {one.first}"
        here.append(one)
