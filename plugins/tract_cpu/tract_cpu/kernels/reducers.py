"""How many elements become one, in native code: what is kept while they are gone through.

What is kept are one or two values, vectors or single numbers. Parts of the elements are gone through independently of
each other, and what is kept of them is merged in an order that is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tract_core.ops.reduce import Reducer
from tract_cpu.language.function import Function, where
from tract_cpu.language.types import BOOL, INDEX, U8, ElementType
from tract_cpu.language.values import Value

Kept = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Reduction:
    """``start``: what is kept of nothing, for elements of a type, in so many lanes.

    ``add``: what is kept with one more element per lane, whose position comes last. ``merge``: of two parts.
    ``finish``: what becomes of it; the second argument is how many elements there were.
    """

    start: Callable[[Function, ElementType, int], Kept]
    add: Callable[[Kept, Value, Value], Kept]
    merge: Callable[[Kept, Kept], Kept]
    finish: Callable[[Kept, Value], Value]


def _first(kept: Kept, count: Value) -> Value:
    return kept[0]


def _second(kept: Kept, count: Value) -> Value:
    return kept[1]


def _plain(first: Callable[[ElementType], float] | float, join: Callable[[Value, Value], Value]) -> Reduction:
    """One value is kept, and joined with each element."""

    def start(f: Function, type_: ElementType, lanes: int) -> Kept:
        return (f.constant(first(type_) if callable(first) else first, type_, lanes),)

    def add(kept: Kept, x: Value, position: Value) -> Kept:
        return (join(kept[0], x),)

    return Reduction(start, add, lambda a, b: (join(a[0], b[0]),), _first)


def lowest(type_: ElementType) -> float:
    """What no element is below."""
    if type_.kind == "f":
        return float("-inf")
    return -(1 << type_.bits - 1) if type_.kind == "i" else 0


def highest(type_: ElementType) -> float:
    """What no element is above."""
    if type_.kind == "f":
        return float("inf")
    return (1 << type_.bits - (type_.kind == "i")) - 1


def smaller(a: Value, b: Value) -> Value:
    """The smaller one; not a number if either is not."""
    if a.type is BOOL:
        return a & b
    return where((a < b) | a.differs(a), a, b) if a.type.kind == "f" else where(a < b, a, b)


def larger(a: Value, b: Value) -> Value:
    """The larger one; not a number if either is not."""
    if a.type is BOOL:
        return a | b
    return where((a > b) | a.differs(a), a, b) if a.type.kind == "f" else where(a > b, a, b)


def _arg(*, largest: bool, last: bool) -> Reduction:
    """An extreme and its position are kept; of equals, the first or the last one."""
    worst, none = lowest if largest else highest, -1 if last else (1 << 62)

    def start(f: Function, type_: ElementType, lanes: int) -> Kept:
        held = U8 if type_ is BOOL else type_
        return f.constant(worst(type_), held, lanes), f.constant(none, INDEX, lanes)

    def merge(a: Kept, b: Kept) -> Kept:
        (best, place), (x, position) = a, b
        better = x > best if largest else x < best
        same = x.equals(best)
        if x.type.kind == "f":
            better = better | (x.differs(x) & best.equals(best))
            same = same | (x.differs(x) & best.differs(best))
        take = better | (same & (position > place if last else position < place))
        return where(take, x, best), where(take, position, place)

    def add(kept: Kept, x: Value, position: Value) -> Kept:
        return merge(kept, (x.function.convert(x, kept[0].type), position))

    return Reduction(start, add, merge, _second)


def _sum_of_squares(kept: Kept, x: Value, position: Value) -> Kept:
    return (kept[0] + x * x,)


def _mean(kept: Kept, count: Value) -> Value:
    return kept[0] / count.function.convert(count, kept[0].type)


_SUM: Final = _plain(0, lambda a, b: a + b)

REDUCTIONS: Final = {
    Reducer.SUM: _SUM,
    Reducer.PROD: _plain(1, lambda a, b: a * b),
    Reducer.MIN: _plain(highest, smaller),
    Reducer.MAX: _plain(lowest, larger),
    Reducer.ARG_MIN_FIRST: _arg(largest=False, last=False),
    Reducer.ARG_MIN_LAST: _arg(largest=False, last=True),
    Reducer.ARG_MAX_FIRST: _arg(largest=True, last=False),
    Reducer.ARG_MAX_LAST: _arg(largest=True, last=True),
    Reducer.MEAN_OF_SQUARES: Reduction(_SUM.start, _sum_of_squares, _SUM.merge, _mean),
    Reducer.ALL: _plain(highest, smaller),
    Reducer.ANY: _plain(lowest, larger),
}
