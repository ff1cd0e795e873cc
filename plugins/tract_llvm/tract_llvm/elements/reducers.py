"""How many elements become one, in native code: what is kept while they are gone through.

What is kept are one or two values, vectors or single numbers. Parts of the elements are gone through independently of
each other, and what is kept of them is merged in an order that is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tract_core.frozen import frozen
from tract_core.ops.reduce import Reducer
from tract_llvm.language.function import Function, where
from tract_llvm.language.types import BOOL, INDEX, U8, ElementType, bits_of
from tract_llvm.language.values import Value

Kept = tuple[Value, ...]


@frozen
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


def _plain(first: float, join: Callable[[Value, Value], Value]) -> Reduction:
    """One value is kept, and joined with each element."""

    def start(f: Function, type_: ElementType, lanes: int) -> Kept:
        return (f.constant(first, type_, lanes),)

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


def _extreme(worst: Callable[[ElementType], float], *, largest: bool) -> Reduction:
    """An extreme is kept. Of floats, comparing says nothing of those that are no number, and of the signs of zeros.

    So one that is no number is kept too, if there was any, rather than a mask, as processors have few registers for
    masks. And of all bits, what all elements have, for a largest one, or any of them: where the extreme is a zero, the
    highest of them is its sign, as all others are on one side of it.
    """

    def start(f: Function, type_: ElementType, lanes: int) -> Kept:
        best = f.constant(worst(type_), type_, lanes)
        if type_.kind != "f":
            return (best,)
        return best, f.constant(0, type_, lanes), f.constant(-1 if largest else 0, bits_of(type_), lanes)

    def better(best: Value, x: Value) -> Value:
        if x.type is BOOL:
            return best | x if largest else best & x
        return where(x > best if largest else x < best, x, best)

    def noted(kept: Kept, more: Kept) -> Kept:
        if not kept:
            return ()
        (none, bits), (x, other) = kept, more
        return where(x.differs(x), x, none), bits & other if largest else bits | other

    def merge(a: Kept, b: Kept) -> Kept:
        return (better(a[0], b[0]), *noted(a[1:], b[1:]))

    def add(kept: Kept, x: Value, position: Value) -> Kept:
        return (better(kept[0], x), *noted(kept[1:], (x, x.bits(kept[2].type)) if kept[1:] else ()))

    def finish(kept: Kept, count: Value) -> Value:
        if len(kept) == 1:
            return kept[0]
        found, none, bits = kept
        zero = (bits & (1 << bits.type.bits - 1)).bits(found.type)
        return where(none.differs(none), none, where(found.equals(0), zero, found))

    return Reduction(start, add, merge, finish)


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
    Reducer.MIN: _extreme(highest, largest=False),
    Reducer.MAX: _extreme(lowest, largest=True),
    Reducer.ARG_MIN_FIRST: _arg(largest=False, last=False),
    Reducer.ARG_MIN_LAST: _arg(largest=False, last=True),
    Reducer.ARG_MAX_FIRST: _arg(largest=True, last=False),
    Reducer.ARG_MAX_LAST: _arg(largest=True, last=True),
    Reducer.MEAN_OF_SQUARES: Reduction(_SUM.start, _sum_of_squares, _SUM.merge, _mean),
    Reducer.ALL: _extreme(highest, largest=False),
    Reducer.ANY: _extreme(lowest, largest=True),
}
