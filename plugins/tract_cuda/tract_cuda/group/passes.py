"""Which passes a program for rows has: what can be computed before anything is reduced, what with its results, ..."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tract_llvm.fuse.steps import Fold, Load, RowStep, operands_of

from tract_core.frozen import frozen


@frozen
class Timed:
    """When values can be computed. ``depth``: how many reductions, one of the other, come before each.

    ``once``: whether there is one of it for a row.
    """

    depth: tuple[int, ...]
    once: tuple[bool, ...]

    @staticmethod
    def of(steps: Sequence[RowStep], stays: Sequence[bool]) -> Timed:
        """``stays``: of each tensor, whether it has one element for a row."""
        depth, once = list[int](), list[bool]()
        for step in steps:
            before = operands_of(step)
            depth.append(max((depth[one] for one in before), default=0) + isinstance(step, Fold))
            if isinstance(step, Load):
                once.append(stays[step.tensor])
            else:
                once.append(isinstance(step, Fold) or all(once[one] for one in before))
        return Timed(tuple(depth), tuple(once))


@frozen
class Scheduled:
    """One pass. ``once``: what is computed before it, for a row; ``each``: at each position; ``folds``: of these.

    ``writes``: which values at each position are written.
    """

    once: tuple[int, ...]
    each: tuple[int, ...]
    folds: tuple[int, ...]
    writes: tuple[int, ...]


def scheduled(
    steps: Sequence[RowStep], timed: Timed, writes: Collection[int], results: Collection[int]
) -> tuple[list[Scheduled], tuple[int, ...]]:
    """The passes, and what is computed behind them for a row.

    ``writes``: the values that are written at each position; ``results``: those that are written once. A pass computes
    what it needs of one before it again: where threads hold a row, there it is.
    """
    wanted = _needed(steps, [*writes, *results])
    folds = [number for number in sorted(wanted) if isinstance(steps[number], Fold)]
    count = 1 + max((timed.depth[one] for one in [*writes, *(operands_of(steps[n])[0] for n in folds)]), default=0)
    passes: list[Scheduled] = []
    for depth in range(count):
        here = tuple(one for one in folds if timed.depth[one] == depth + 1)
        written = tuple(one for one in sorted(writes) if timed.depth[one] == depth)
        each = _each(steps, timed, [*(operands_of(steps[one])[0] for one in here), *written])
        passes.append(Scheduled(_once(steps, timed, wanted, depth), each, here, written))
    last = tuple(one for depth in range(count, max(timed.depth) + 1) for one in _once(steps, timed, wanted, depth))
    return passes, last


def _needed(steps: Sequence[RowStep], values: Sequence[int]) -> set[int]:
    """These values, and all that they are computed of."""
    found, more = set[int](), list(values)
    while more:
        number = more.pop()
        if number not in found:
            found.add(number)
            more += operands_of(steps[number])
    return found


def _once(steps: Sequence[RowStep], timed: Timed, wanted: Collection[int], depth: int) -> tuple[int, ...]:
    """What is computed once for a row, right when it can be."""
    numbers = (one for one in sorted(wanted) if timed.once[one] and timed.depth[one] == depth)
    return tuple(one for one in numbers if not isinstance(steps[one], Fold))


def _each(steps: Sequence[RowStep], timed: Timed, values: Sequence[int]) -> tuple[int, ...]:
    """These values and what they are computed of, as far as there is one at each position."""
    found, more = set[int](), list(values)
    while more:
        number = more.pop()
        if number not in found and not timed.once[number]:
            found.add(number)
            more += operands_of(steps[number])
    return tuple(sorted(found))
