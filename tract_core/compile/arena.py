"""Which parts of an arena lie in the same place, as one is not needed any more when the other one begins.

The arena is made of slots. Storages whose sizes are multiples of one size, which all numbers are, lie in one slot,
each at the offset where it fits between those that are needed at the same time. Other sizes with symbols in them cannot
be laid side by side before they have values: there, a slot is as large as the largest storage that lies in it, at its
begin. Which storage lies where is decided once, for all sizes; how large the slots are is computed when the symbols get
their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from tract_core.compile.arena_plan import ArenaPlan
from tract_core.dims import Dim, TDim, is_symbolic

Lives = Mapping[int, tuple[int, int]]
"""For storages, by number, from which step to which their content counts, both included."""

NEAR: Final = 16
"""What takes less than one part in so many more than is needed at the same time is good enough."""


def plan_arena(sizes: Sequence[Dim], lives: Lives, stage_of: Callable[[Dim], int], alignment: int) -> ArenaPlan:
    """The slots for storages, each of which begins at a multiple of ``alignment`` bytes.

    ``sizes``: of all storages, in bytes; ``lives``: of those that anybody writes or reads; ``stage_of``: from which
    stage of the run on a size is known, 0 for its begin.
    """
    by_stage: dict[int, list[int]] = {}
    for number in lives:
        by_stage.setdefault(stage_of(sizes[number]), []).append(number)
    draft = _Draft(sizes, lives, alignment)
    for stage, here in sorted(by_stage.items()):
        symbolic = [number for number in here if is_symbolic(sizes[number])]
        units = {unit_of(sizes[number], alignment) for number in symbolic}
        known = [number for number in here if number not in set(symbolic)]
        draft.pack(known, 1, stage)
        unit = next(iter(units)) if len(units) == 1 else None
        if unit is not None:
            draft.pack(symbolic, unit, stage)
        else:
            draft.share(symbolic, stage)
    return draft.plan()


def lives_of(steps: Sequence[Iterable[int]], last: Iterable[int] = (), loops: Iterable[tuple[int, int]] = ()) -> Lives:
    """From which step to which the content of each storage counts.

    ``steps``: the numbers of the storages that each step touches; ``last``: those that count behind all of them;
    ``loops``: the first and the last of steps that are done again, an inner loop behind the one around it.

    That is from the first step to the last one that touches it. What a loop touches and others touch too has to stay as
    it is as long as the loop goes round.
    """
    found: dict[int, tuple[int, int]] = {}
    for place, step in enumerate(steps):
        for number in step:
            found[number] = found.get(number, (place, place))[0], place
    for number in last:
        found[number] = found[number][0], len(steps)
    for begin, end in loops:  # the ends of one that is inside of another loop are inside too
        for number, (first, until) in found.items():
            if first <= end and until >= begin and not (begin <= first and until <= end):
                found[number] = min(first, begin), max(until, end)
    return found


def unit_of(size: Dim, alignment: int) -> Dim | None:
    """The product of symbols that a size is a multiple of, aligned whatever they are; ``None`` where there is none."""
    if not isinstance(size, TDim) or size.constant or len(size.terms) != 1:
        return None
    ((product, times),) = size.terms.items()
    return None if times % alignment else TDim({product: 1}, 0)


class _Draft:
    """Slots, while storages get their places. ``sizes``: of all storages."""

    def __init__(self, sizes: Sequence[Dim], lives: Lives, alignment: int) -> None:
        self._sizes, self._alignment = sizes, alignment
        self._lives = lives
        self._slot_of = [-1] * len(sizes)
        self._offset_of: list[Dim] = [0] * len(sizes)
        self._contents: list[list[Dim]] = []
        self._stages: list[int] = []

    def plan(self) -> ArenaPlan:
        """What was decided."""
        contents = tuple(map(tuple, self._contents))
        return ArenaPlan(tuple(self._slot_of), tuple(self._offset_of), contents, tuple(self._stages))

    def pack(self, storages: Sequence[int], unit: Dim, stage: int) -> None:
        """Lay storages into one slot, side by side where they are needed at the same time. Sizes are in ``unit``."""
        if not storages:
            return
        multiples = {number: _times(self._sizes[number], self._alignment) for number in storages}
        offsets, end = _packed({number: self._lives[number] for number in storages}, multiples, self._alignment)
        for number, offset in offsets.items():
            self._slot_of[number], self._offset_of[number] = len(self._contents), offset * unit
        self._contents.append([end * unit])
        self._stages.append(stage)

    def share(self, storages: Sequence[int], stage: int) -> None:
        """Have storages lie in the same slot, one after the other."""
        first_slot = len(self._contents)
        free_from: dict[int, int] = {}
        for number in sorted(storages, key=lambda one: self._lives[one]):
            first, last = self._lives[number]
            size = self._sizes[number]
            free = [slot for slot, step in free_from.items() if step < first]
            slot = next((one for one in free if size in self._contents[one]), free[0] if free else None)
            if slot is None:
                slot = len(self._contents)
                self._contents.append([])
                self._stages.append(stage)
            self._slot_of[number], free_from[slot] = slot, last
            if size not in self._contents[slot]:
                self._contents[slot].append(size)
        assert all(slot >= first_slot for slot in free_from)  # none that holds anything else


def _times(size: Dim, alignment: int) -> int:
    """How many units a size has, up to a multiple of the alignment."""
    times = next(iter(size.terms.values())) if isinstance(size, TDim) else size
    return max(-(-times // alignment) * alignment, 0)  # sizes of a branch that is never taken may be below 0


def _packed(lives: Lives, sizes: Mapping[int, int], alignment: int) -> tuple[dict[int, int], int]:
    """Where storages of these sizes begin, and where all of them end.

    One after the other gets the tightest gap between those that have a place and are needed at the same time: the
    largest first, or where that leaves gaps, in some other order, or with sizes that are a little too large, as those
    that are about equal then fit in each other's places. The best is taken.

    Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (greedy by size).
    """
    least = _most_at_once(lives, sizes)
    orders: list[Callable[[int], Any]] = [
        lambda one: (-sizes[one], lives[one]),
        lambda one: lives[one],
        lambda one: (lives[one][0] - lives[one][1], -sizes[one]),
    ]
    found: list[tuple[dict[int, int], int]] = []
    for taken in (sizes, {number: _rounded(size, alignment) for number, size in sizes.items()}):
        for order in orders:
            found.append(_laid(sorted(lives, key=order), lives, taken))
            if found[-1][1] * NEAR <= least * (NEAR + 1):
                return found[-1]
    return min(found, key=lambda one: one[1])


def _rounded(size: int, alignment: int) -> int:
    """A size, up to a quarter larger, of which there are four from one power of 2 to the next."""
    step = max(alignment, 1 << max(size.bit_length() - 3, 0))
    return -(-size // step) * step


def _most_at_once(lives: Lives, sizes: Mapping[int, int]) -> int:
    """How much is needed at the same time, at most."""
    changes: dict[int, int] = {}
    for number, (first, last) in lives.items():
        changes[first] = changes.get(first, 0) + sizes[number]
        changes[last + 1] = changes.get(last + 1, 0) - sizes[number]
    return max(accumulate(changes[step] for step in sorted(changes)))


def _laid(order: Sequence[int], lives: Lives, sizes: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """Where storages begin that get their places in an order, and where all of them end."""
    offsets: dict[int, int] = {}
    needed: dict[int, list[int]] = {}
    for number in order:
        steps = range(lives[number][0], lives[number][1] + 1)
        others = {other for step in steps for other in needed.get(step, ())}
        offsets[number] = _gap(sorted((offsets[one], offsets[one] + sizes[one]) for one in others), sizes[number])
        for step in steps:
            needed.setdefault(step, []).append(number)
    return offsets, max(offsets[number] + size for number, size in sizes.items())


def _gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """Where the tightest gap begins between parts that are taken, in order; else where the last of them ends."""
    best, tightest, end = -1, 0, 0
    for begin, behind in taken:
        if begin - end >= size and (best < 0 or begin - end < tightest):
            best, tightest = end, begin - end
        end = max(end, behind)
    return best if best >= 0 else end
